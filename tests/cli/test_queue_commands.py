"""`holdfast queues` and `holdfast keys`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Invoke, json_output
from tests.contract.helpers.workers import register
from tests.listing import runs_of

from holdfast import Holdfast
from holdfast.testing import Manual


@pytest.fixture
def url(tmp_path: Path) -> str:
    found = f"sqlite:///{tmp_path / 'work.db'}"
    with Holdfast(found) as hf:
        job = hf.job(name="work", queue="runs", key="doc")(lambda doc: None)
        job.submit_many([{"doc": "a"}, {"doc": "a"}, {"doc": "b\x1b[31m"}])
        Manual(hf).worker("worker-1", queues=["runs"]).claim()
    return found


def test_queues_are_listed_with_their_limits_and_pauses(holdfast: Invoke, url: str) -> None:
    assert holdfast("queues", "limit", url, "runs", "--max-queued", "3", "--concurrency", "2").stdout == (
        "runs: at most 3 queued or running, at most 2 at once\n"
    )
    assert holdfast("queues", "pause", url, "mail", "--note", "provider \x1b[2J down").stdout == "mail is paused\n"
    shown = holdfast("queues", "list", url).stdout
    [header, mail, runs] = shown.splitlines()
    assert header.split() == [
        "QUEUE",
        "QUEUED",
        "READY",
        "RUNNING",
        "MAX",
        "QUEUED",
        "CONCURRENCY",
        "OLDEST",
        "REFUSED",
        "NOTE",
    ]
    assert runs.split()[:7] == ["runs", "2", "1", "1", "3", "of", "3"]
    assert "paused since" in mail
    assert "\x1b" not in shown

    [one, two] = json_output(holdfast("queues", "list", url, "--json"))["items"]
    assert (one["name"], one["note"]) == ("mail", "provider \x1b[2J down")
    assert (two["queued"], two["ready"], two["running"], two["capacity_used"]) == (2, 1, 1, 3)
    assert (two["max_queued"], two["concurrency"]) == (3, 2)

    assert holdfast("queues", "resume", url, "mail").stdout == "mail is resumed\n"
    assert "paused" not in holdfast("queues", "list", url).stdout
    assert "any number queued" in holdfast("queues", "limit", url, "runs", "--max-queued", "none").stdout


@pytest.mark.contract("S3")
def test_a_queue_without_a_worker_is_marked(holdfast: Invoke, url: str) -> None:
    assert "no worker is alive" in holdfast("queues", "list", url).stdout
    with Holdfast(url) as hf:
        register(hf, "w", jobs=["work"])
        assert "no live worker serves queue runs" in holdfast("queues", "list", url).stdout
        register(hf, "v", jobs=["work"], queues=["runs"])
        assert "no live worker" not in holdfast("queues", "list", url).stdout


def test_keys_are_listed_with_their_holders_and_waiting_runs(holdfast: Invoke, url: str) -> None:
    shown = holdfast("keys", "list", url).stdout
    [header, first, second] = shown.splitlines()
    assert header.split() == ["KEY", "LIMIT", "WAITING", "OLDEST", "HELD", "BY"]
    assert first.split()[:3] == ["doc:a", "1", "1"]
    assert first.endswith("on worker-1")
    assert second.endswith("(ready, not started)")
    assert "\x1b" not in shown

    page = json_output(holdfast("keys", "list", url, "--limit", "1", "--json"))
    assert [key["key"] for key in page["items"]] == ["doc:a"]
    rest = json_output(holdfast("keys", "list", url, "--after", page["next"], "--json"))
    assert [(key["waiting"], key["limit"]) for key in rest["items"]] == [(0, 1)]
    assert rest["items"][0]["holders"][0]["worker"] is None


def test_empty_lists_print_a_message(holdfast: Invoke, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    with Holdfast(url) as hf:
        hf.start()
    assert holdfast("queues", "list", url).stdout == ""
    assert "no queues yet" in holdfast("queues", "list", url).stderr
    assert "no run holds or waits for a key" in holdfast("keys", "list", url).stderr


@pytest.mark.contract("Q8")
def test_a_full_queue_prints_one_line_with_its_code(holdfast: Invoke, url: str, tmp_path: Path) -> None:
    holdfast("queues", "limit", url, "runs", "--max-queued", "3")
    with Holdfast(url) as hf:
        first = runs_of(hf)[-1].id
    refused = holdfast("runs", "again", url, first)
    assert refused.exit_code == 1
    assert refused.stderr.startswith(
        "holdfast: queue_full: queue runs: 3 runs are queued or running, and the limit is 3"
    )


def test_a_paused_queue_starts_nothing_until_it_is_resumed(holdfast: Invoke, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'work.db'}"
    with Holdfast(url, poll_interval=0.05) as hf:
        job = hf.job(name="work")(lambda: None)
        run = job.submit()
        holdfast("queues", "pause", url, "default")
        assert Manual(hf).worker("a").claim() == []
        holdfast("queues", "resume", url, "default")
        with hf.worker():
            assert run.result(timeout=60) is None


def test_changing_a_queue_prints_its_new_status(holdfast: Invoke, url: str) -> None:
    paused = json_output(holdfast("queues", "pause", url, "runs", "--note", "wait", "--json"))
    assert (paused["name"], paused["note"], paused["queued"]) == ("runs", "wait", 2)
    limited = json_output(holdfast("queues", "limit", url, "runs", "--concurrency", "2", "--json"))
    assert (limited["concurrency"], limited["max_queued"]) == (2, None)
    assert json_output(holdfast("queues", "resume", url, "runs", "--json"))["paused_at"] is None


def test_an_unused_queue_causes_a_warning_and_leaves_no_row_when_its_limits_are_lifted(
    holdfast: Invoke, url: str
) -> None:
    warning = "warning: queue rnus: it has no runs; is the name correct?\n"
    assert holdfast("queues", "pause", url, "rnus").stderr == warning
    assert holdfast("queues", "limit", url, "rnus", "--max-queued", "3").stderr == warning
    assert "rnus" in holdfast("queues", "list", url).stdout
    holdfast("queues", "resume", url, "rnus")
    lifted = holdfast("queues", "limit", url, "rnus", "--max-queued", "none")
    assert lifted.stdout == "rnus: any number queued or running, any number at once\n"
    assert "rnus" not in holdfast("queues", "list", url).stdout
    assert holdfast("queues", "pause", url, "runs").stderr == ""


def test_a_queue_of_a_job_causes_no_warning(inside: Invoke) -> None:
    assert inside("queues", "pause", "app:hf", "default").stderr == ""
    refused = inside("queues", "pause", "app:hf", "defualt")
    assert "no job of this application uses it and it has no runs" in refused.stderr
