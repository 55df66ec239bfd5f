"""Commands over HTTP print the same as commands on the database."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.listing import runs_of
from tests.sample_app import sample_app
from tests.web.conftest import TOKEN, Server

from holdfast import Holdfast, RunFailed
from holdfast.cli import main
from holdfast.testing import Manual

Invoke = Callable[..., Result]


@pytest.fixture(scope="module")
def hf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holdfast]:
    """Runs in several states, a build, a pipeline and a paused queue."""
    with sample_app(tmp_path_factory.mktemp("commands")) as hf:
        with hf.worker(queues=["default", "risky"]):
            hf.submit("letters.greet", name="Ada", times=2).result(20)
            with pytest.raises(RunFailed):
                hf.submit("letters.fail", text="no \x1b[31mink\x1b[0m <b>").result(20)
            hf.submit("environments.install", package="a", fingerprint="f1").result(20)
            hf.submit("film", text="take one").result(20)
        hf.jobs["letters.greet"].using(tags={"to": "bob"}, priority=3, delay=timedelta(days=1)).submit(name="Bob")
        hf.submit("letters.greet", name="Cy")
        hf.queues.pause("risky", note="printer offline")
        hf.queues.limit("risky", max_queued=5)
        yield hf


@pytest.fixture
def here(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Runs a command with the URL of the database."""
    monkeypatch.setenv("HOLDFAST_ARTIFACTS", str(hf.settings.artifacts))
    return lambda command, *rest: invoke(*command.split(), hf.settings.url, *rest)


@pytest.fixture
def there(server: Server, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Runs a command with the URL of the server."""
    monkeypatch.setenv("HOLDFAST_TOKEN", TOKEN)
    return lambda command, *rest: invoke(*command.split(), server.url, *rest)


def invoke(*arguments: str) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def the(hf: Holdfast, job: str) -> str:
    return runs_of(hf, job=job)[-1].id


QUESTIONS = [
    ["runs list"],
    ["runs list", "--all", "--json"],
    ["runs list", "--state", "failed"],
    ["runs list", "--job", "greet", "--limit", "1"],
    ["runs list", "--tag", "to=bob", "--json"],
    ["runs list", "--queue", "nothing"],
    ["runs show", "letters.greet"],
    ["runs show", "letters.fail", "--json"],
    ["runs show", "film"],
    ["runs why", "letters.fail"],
    ["runs follow", "letters.greet"],
    ["runs follow", "letters.fail", "--json"],
    ["runs why", "01m2nothing"],
    ["runs show", "x"],
    ["pipelines list"],
    ["pipelines show", "film"],
    ["pipelines show", "film", "--json"],
    ["pipelines show", "letters.greet"],
    ["builds list"],
    ["builds show", "environments.install", "--json"],
    ["builds show", "letters.greet"],
    ["queues list"],
    ["queues list", "--json"],
    ["keys list"],
    ["keys list", "--json"],
    ["schedules list"],
    ["schedules slots", "letters.nothing"],
    ["artifacts list", "letters.greet"],
    ["workers list"],
    ["tokens list", "--json"],
]


@pytest.mark.parametrize("command", QUESTIONS, ids=" ".join)
def test_a_remote_command_prints_the_same_as_a_local_one(
    command: list[str], hf: Holdfast, here: Invoke, there: Invoke
) -> None:
    jobs = {run.job for run in runs_of(hf)}
    words = [the(hf, word) if word in jobs and "--job" not in command else word for word in command[1:]]
    on_database, on_server = here(command[0], *words), there(command[0], *words)
    assert on_database.exit_code == on_server.exit_code
    assert _steady(on_server.stdout) == _steady(on_database.stdout)
    assert _steady(on_server.stderr) == _steady(on_database.stderr)


def _steady(text: str) -> str:
    """The text without durations, which depend on the moment."""
    return re.sub(r"\b\d+(\.\d+)? ?(ms|s|m|h)\b", "…", text)


def test_a_prefix_of_an_id_is_enough(hf: Holdfast, there: Invoke) -> None:
    whole = the(hf, "letters.fail")
    assert json.loads(there("runs why", whole[:20], "--json").stdout)["id"] == whole


def test_a_remote_command_changes_the_database(hf: Holdfast, there: Invoke) -> None:
    waiting = hf.submit("letters.greet", name="Dee")
    assert there("runs cancel", waiting.id, "--reason", "wrong").stdout == "cancelled\n"
    assert waiting.refresh().snapshot.error == "wrong"
    again = there("runs again", waiting.id).stdout.strip()
    assert hf.snapshot(again).again_of == waiting.id
    assert "is paused" in there("queues pause", "mail", "--note", "down").stdout
    assert hf.queues.get("mail").note == "down"
    assert "is resumed" in there("queues resume", "mail").stdout
    assert "at most 7" in there("queues limit", "mail", "--max-queued", "7").stdout
    assert hf.queues.get("mail").max_queued == 7
    assert there("schedules pause", "letters.daily", "--note", "x").exit_code == 0
    assert hf.schedules.get("letters.daily").note == "x"
    assert there("schedules resume", "letters.daily").exit_code == 0
    Manual(hf).worker().register()
    run_id = there("schedules trigger", "letters.daily", "2026-11-16T00:00:00Z").stdout.strip()
    assert hf.snapshot(run_id).job == "letters.daily"
    refused = there("schedules trigger", "letters.daily", "2026-11-16T00:00:00Z")
    assert (refused.exit_code, refused.stderr[:21]) == (1, "holdfast: slot_taken:")
    hf.cancel(run_id)
    built = hf.builds.list()[0]
    assert "stale" in there("builds invalidate", built.run_id, "--reason", "old").stdout
    assert hf.builds.get(built).reason == "old"
    anew = there("builds rebuild", built.run_id).stdout.strip()
    assert hf.snapshot(anew).again_of == built.run_id
    rerun = there("pipelines rerun", the(hf, "film"), "--from", "render").stdout.strip()
    assert hf.pipelines.show(rerun).stages[0].reused
    done = {operation.action: operation.by for operation in hf.audit_log()}
    assert {"cancel", "again", "pause", "resume", "limit", "trigger", "invalidate", "rebuild", "rerun"} <= set(done)
    assert set(done.values()) == {"admin"}


def test_a_run_is_submitted_remotely(hf: Holdfast, there: Invoke) -> None:
    made = json.loads(
        there("submit", "greet", "name=Eve", "--tag", "a=b", "--key", "k", "--delay", "1h", "--json").stdout
    )
    run = hf.snapshot(made["id"])
    assert (run.job, run.args, run.tags, run.key) == ("letters.greet", {"name": "Eve"}, {"a": "b"}, "k")
    unfit = there("submit", "greet", "nme=Eve")
    assert (unfit.exit_code, unfit.stderr[:28]) == (2, "holdfast: invalid_arguments:")
    unknown = there("submit", "gret", "name=Eve")
    assert unknown.exit_code == 3
    assert "did you mean" in unknown.stderr


def test_an_artifact_is_downloaded_remotely(hf: Holdfast, there: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "letter"
    assert there("artifacts get", the(hf, "letters.greet"), "letter.txt", "-o", str(file)).exit_code == 0
    assert file.read_text() == "Dear Ada"
    assert there("artifacts get", the(hf, "letters.greet"), "other").exit_code == 3


@pytest.mark.parametrize("spelt", [["--url", "{url}"], ["--url={url}"]], ids=["two words", "one"])
@pytest.mark.parametrize("where", ["before", "behind"])
def test_the_url_may_be_at_any_position(spelt: list[str], where: str, hf: Holdfast, server: Server) -> None:
    options = [word.format(url=server.url) for word in spelt] + ["--token", TOKEN]
    command = ["runs", "why", the(hf, "letters.fail"), "--json"]
    line = [*options, *command] if where == "before" else [*command, *options]
    answer: Any = json.loads(invoke(*line).stdout)
    assert answer["state"] == "failed"


def test_the_url_printed_by_serve_contains_its_token(hf: Holdfast, server: Server) -> None:
    assert invoke("queues", "list", f"{server.url}/?token={TOKEN}").exit_code == 0


def test_a_request_that_the_server_refuses_is_reported_in_one_line(server: Server, there: Invoke) -> None:
    needs_code = there("verify")
    assert (needs_code.exit_code, needs_code.stderr[:22]) == (2, "holdfast: cannot_load:")
    stranger = invoke("runs", "list", server.url, "--token", "wrong")
    assert (stranger.exit_code, stranger.stderr[:24]) == (1, "holdfast: not_signed_in:")
    nobody = invoke("runs", "list", "http://127.0.0.1:9", "--token", "t")
    assert (nobody.exit_code, nobody.stderr[:29]) == (6, "holdfast: server_unavailable:")
    assert invoke("runs", "list", "--url", "ftp://x").exit_code == 2
    assert invoke("completion", "bash", "--url", server.url).exit_code == 2
