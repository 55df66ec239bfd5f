"""`holdfast runs`, given the URL of each kind of database."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from tests.cli import hostile_text
from tests.cli.conftest import Invoke, json_output

from holdfast import Context, Holdfast, Run, Snapshot
from holdfast.testing import Manual


@pytest.fixture
def jobs(hf: Holdfast) -> Any:
    class Jobs:
        @staticmethod
        @hf.job(name="add", key="{a}")
        def add(a: int, b: int = 0) -> int:
            return a + b

        @staticmethod
        @hf.job(name="fail")
        def fail(text: str) -> None:
            raise ValueError(text)

    return Jobs


@pytest.fixture
def ended(jobs: Any, manual: Manual) -> Run[int]:
    run: Run[int] = jobs.add.using(tags={"tenant": "acme"}).submit(a=1, b=2)
    manual.run_all()
    return run


def test_the_newest_runs_are_listed_first(holdfast: Invoke, url: str, jobs: Any, ended: Run[int]) -> None:
    waiting = jobs.add.using(delay=60).submit(a=5)
    result = holdfast("runs", "list", url)
    header, first, second = result.stdout.splitlines()
    assert result.exit_code == 0
    assert header.split() == ["ID", "STATE", "JOB", "CREATED", "TOOK", "ATTEMPT", "QUEUE", "KEY", "NOTE"]
    assert first.split()[:3] == [waiting.id, "queued", "add"]
    assert first.endswith("delayed")
    assert second.split()[:3] == [ended.id, "succeeded", "add"]


def test_json_has_every_field_of_a_run(holdfast: Invoke, url: str, ended: Run[int]) -> None:
    document = json_output(holdfast("runs", "list", url, "--json"))
    assert document.keys() == {"items", "next"}
    [run] = document["items"]
    assert run.keys() == Snapshot.__dataclass_fields__.keys()
    assert (run["id"], run["result"], run["args"]) == (ended.id, 3, {"a": 1, "b": 2})
    assert run["tags"] == {"tenant": "acme"}
    assert run["policy"]["timeout"] == 120
    assert datetime.fromisoformat(run["created_at"]) == ended.snapshot.created_at


def test_a_list_of_runs_can_be_filtered_and_paged(holdfast: Invoke, url: str, jobs: Any, manual: Manual) -> None:
    made = [jobs.add.submit(a=number).id for number in range(5)]
    manual.run_all()
    made.append(jobs.fail.using(queue="other").submit(text="x").id)

    def ids(*arguments: str) -> list[str]:
        return [run["id"] for run in json_output(holdfast("runs", "list", url, "--json", *arguments))["items"]]

    assert ids("--job", "add") == made[4::-1]
    assert ids("--state", "queued") == ids("--queue", "other") == [made[5]]
    assert ids("--state", "failed") == []
    assert ids("--limit", "2") == [made[5], made[4]]
    assert ids("--limit", "2", "--before", made[4]) == [made[3], made[2]]
    assert json_output(holdfast("runs", "list", url, "--json", "--limit", "2"))["next"] == made[4]
    assert json_output(holdfast("runs", "list", url, "--json", "--limit", "6", "--before", made[0]))["next"] is None
    assert f"--before {made[4]}" in holdfast("runs", "list", url, "--limit", "2").stderr


def test_an_empty_list_prints_a_message_to_stderr(holdfast: Invoke, url: str, manual: Manual) -> None:
    result = holdfast("runs", "list", url)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no runs yet\n")


def test_show_prints_every_field_and_the_timeline(holdfast: Invoke, url: str, ended: Run[int]) -> None:
    shown = holdfast("runs", "show", url, ended.id).stdout
    story = ("RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED", "it succeeded at")
    for text in (ended.id, "tenant=acme", '{"a": 1, "b": 2}', *story):
        assert text in shown
    document = json_output(holdfast("runs", "show", url, ended.id, "--json"))
    assert document.keys() == Snapshot.__dataclass_fields__.keys() | {"reasons", "timeline"}
    assert [event["kind"] for event in document["timeline"]] == ["RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED"]
    assert document["timeline"][0].keys() == {"run_id", "kind", "claim", "happened_at", "data"}


def test_why_prints_the_reasons_that_the_python_api_returns(
    holdfast: Invoke, url: str, hf: Holdfast, jobs: Any
) -> None:
    first, second = jobs.add.submit(a=1), jobs.add.submit(a=1)
    document = json_output(holdfast("runs", "why", url, second.id, "--json"))
    assert document == {"id": second.id, "state": "queued", "reasons": list(hf.why(second.id).reasons)}
    assert first.id in document["reasons"][0]
    listed = "".join(f"  {reason}\n" for reason in document["reasons"])
    assert holdfast("runs", "why", url, second.id).stdout == f"queued\n{listed}"


def test_cancel_ends_a_waiting_run_and_keeps_the_reason(holdfast: Invoke, url: str, jobs: Any) -> None:
    run = jobs.add.submit(a=1)
    result = holdfast("runs", "cancel", url, run.id, "--reason", "wrong file")
    assert (result.exit_code, result.stdout) == (0, "cancelled\n")
    assert (run.refresh().state, run.snapshot.error) == ("cancelled", "wrong file")


def test_cancel_asks_a_running_run_to_stop(holdfast: Invoke, url: str, jobs: Any, manual: Manual) -> None:
    run = jobs.add.submit(a=1)
    manual.worker().claim()
    assert json_output(holdfast("runs", "cancel", url, run.id, "--json")) == {"id": run.id, "state": "running"}
    assert run.refresh().snapshot.cancel_requested_at is not None


def test_cancel_of_an_ended_run_is_refused(holdfast: Invoke, url: str, ended: Run[int]) -> None:
    result = holdfast("runs", "cancel", url, ended.id)
    assert (result.exit_code, result.stdout) == (1, "not cancelled: the run had already ended as succeeded\n")


@pytest.mark.contract("Q16")
def test_again_submits_a_new_run_that_names_the_old_one(
    holdfast: Invoke, url: str, hf: Holdfast, ended: Run[int]
) -> None:
    result = holdfast("runs", "again", url, ended.id)
    new = hf.get(result.stdout.strip())
    assert (new.snapshot.again_of, new.snapshot.args, new.state) == (ended.id, {"a": 1, "b": 2}, "queued")
    assert ended.refresh().state == "succeeded"
    assert json_output(holdfast("runs", "again", url, ended.id, "--json"))["again_of"] == ended.id


def test_follow_prints_the_timeline_and_its_exit_code_is_the_outcome(
    holdfast: Invoke, url: str, jobs: Any, manual: Manual, ended: Run[int]
) -> None:
    result = holdfast("runs", "follow", url, ended.id, "--json")
    kinds = [json.loads(line)["kind"] for line in result.stdout.splitlines()]
    assert (result.exit_code, kinds) == (0, ["RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED"])
    failed = jobs.fail.submit(text="no")
    manual.run_all()
    result = holdfast("runs", "follow", url, failed.id)
    assert result.exit_code == 1
    assert "RUN_FAILED" in result.stdout.splitlines()[-1]
    assert "ValueError: no" in result.stdout.splitlines()[-1]


def test_follow_gives_up_after_its_timeout(holdfast: Invoke, url: str, jobs: Any) -> None:
    result = holdfast("runs", "follow", url, jobs.add.submit(a=1).id, "--timeout", "0.1")
    assert result.exit_code == 8
    assert result.stderr.startswith("holdfast: result_timeout: ")


def test_a_forgotten_step_is_shown(holdfast: Invoke, url: str, hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.step("begin", int)
        ctx.forget("begin")

    run = work.submit()
    manual.run_all()
    for command in ("show", "follow"):
        lines = holdfast("runs", command, url, run.id).stdout.splitlines()
        [line] = [line for line in lines if "STEP_FORGOTTEN" in line]
        assert "step: begin" in line


def test_hostile_text_is_shown_as_text(holdfast: Invoke, url: str, hf: Holdfast, manual: Manual) -> None:
    @hf.job(name=f"name {hostile_text.MARKUP}", queue=f"queue {hostile_text.BACKWARDS}", key="{text}")
    def job(text: str) -> None:
        raise ValueError(text)

    run = job.using(tags={"tag": hostile_text.ALL}, idempotency_key=hostile_text.MARKUP).submit(text=hostile_text.ALL)
    manual.run_all()
    assert run.refresh().state == "failed"
    for command in (["list", url], ["show", url, run.id], ["why", url, run.id], ["follow", url, run.id]):
        for arguments in (command, [*command, "--json"]):
            result = holdfast("runs", *arguments)
            assert not hostile_text.control_characters(result.output), command
    shown = holdfast("runs", "show", url, run.id).stdout
    spelled = "\\x1b[31mred\\x1b[0m \\x1b]0;owned\\x07 a\\rb\\x08c\\x7f\\x9b2J \\u202etxt.exe\\u2066"
    assert f"ValueError: {spelled} {hostile_text.MARKUP}" in shown
    assert hostile_text.EMOJI in shown
    assert json_output(holdfast("runs", "show", url, run.id, "--json"))["args"] == {"text": hostile_text.ALL}
    assert run.id in holdfast("runs", "list", url).stdout
