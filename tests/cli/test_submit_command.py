"""`holdfast submit`: its options and its output."""

from __future__ import annotations

import json

import pytest
from tests.cli import hostile_text
from tests.cli.conftest import Invoke, Shell
from tests.listing import runs_of

from holdfast import Holdfast, Snapshot


def runs(shell: Shell) -> list[Snapshot]:
    with Holdfast(shell.environment["HOLDFAST_URL"]) as hf:
        return runs_of(hf)


def test_submit_prints_only_the_run_id(shell: Shell) -> None:
    done = shell("submit", "app:hf", "greet", "name=Ada", "times=3")
    [run] = runs(shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{run.id}\n", "")
    assert (run.job, run.args) == ("letters.greet", {"name": "Ada", "times": 3})


def test_a_target_may_be_a_file_or_a_module(shell: Shell, inside: Invoke) -> None:
    (shell.folder / "own.py").write_text(
        "from holdfast import Holdfast\n\nhf = Holdfast()\n\n\n@hf.job()\ndef greet() -> None: ...\n"
    )
    for target in ("own:hf", "own.py:hf", f"{shell.folder}/own.py:hf"):
        assert inside("submit", target, "own.greet").exit_code == 0
    assert [run.job for run in runs(shell)] == ["own.greet"] * 3


def test_every_option_reaches_the_run(shell: Shell, inside: Invoke) -> None:
    done = inside(
        *("submit", "app:hf", "greet", "--json-args", '{"name": "Ada"}', "--queue", "mail", "--priority", "7"),
        *("--delay", "5m", "--key", "one", "--idempotency-key", "twice", "--tag", "a=b", "--tag", "c=d=e", "--json"),
    )
    document = json.loads(done.stdout)
    [run] = runs(shell)
    assert document["id"] == run.id
    assert (run.queue, run.priority, run.key, run.idempotency_key) == ("mail", 7, "one", "twice")
    assert run.tags == {"a": "b", "c": "d=e"}
    assert run.due_at is not None
    assert (run.due_at - run.created_at).total_seconds() == pytest.approx(300, abs=1)


def test_text_stays_text_and_json_is_json(shell: Shell, inside: Invoke) -> None:
    inside("submit", "app:hf", "echo", "value=[1, 2]")
    inside("submit", "app:hf", "echo", "value:=[1, 2]")
    assert [run.args["value"] for run in runs(shell)] == [[1, 2], "[1, 2]"]


def test_wait_prints_the_result_and_the_exit_code_is_the_outcome(shell: Shell, inside: Invoke) -> None:
    worker = shell.start("worker", "app:hf", "-q", "default,risky")
    done = inside("submit", "app:hf", "letters.greet", "name=Ada", "--wait", "--timeout", "30")
    assert (done.exit_code, done.stdout) == (0, '{"said": "hello Ada", "times": 1}\n')
    done = inside("submit", "app:hf", "fail", f"text={hostile_text.ESCAPE}", "--wait", "--timeout", "30")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("holdfast: run_failed: run ")
    assert done.stderr.endswith("failed: ERROR: ValueError: \\x1b[31mred\\x1b[0m\n")
    done = inside("submit", "app:hf", "fail", "text=no", "--wait", "--timeout", "30", "--json")
    assert (done.exit_code, json.loads(done.stdout)["failure_type"]) == (1, "ERROR")
    assert worker.poll() is None


def test_wait_ends_at_its_timeout(shell: Shell, inside: Invoke) -> None:
    done = inside("submit", "app:hf", "fail", "text=no", "--wait", "--timeout", "0.1")
    assert done.exit_code == 8
    assert done.stderr.startswith("holdfast: result_timeout: ")
    assert [run.state for run in runs(shell)] == ["queued"]


def test_an_idempotency_key_with_other_arguments_is_a_conflict(shell: Shell, inside: Invoke) -> None:
    first = inside("submit", "app:hf", "letters.greet", "name=a", "--idempotency-key", "k")
    assert inside("submit", "app:hf", "letters.greet", "name=a", "--idempotency-key", "k").stdout == first.stdout
    done = inside("submit", "app:hf", "letters.greet", "name=b", "--idempotency-key", "k")
    assert (done.exit_code, done.stderr.split(": ")[1]) == (1, "idempotency_conflict")


def test_hostile_arguments_are_stored_unchanged(shell: Shell, inside: Invoke) -> None:
    text = hostile_text.ALL
    inside("submit", "app:hf", "echo", f"value={text}", "--key", text[:100], "--tag", f"a={text}")
    [run] = runs(shell)
    assert (run.args["value"], run.key, run.tags) == (text, text[:100], {"a": text})


def test_an_argument_that_is_not_utf_8_is_refused(shell: Shell) -> None:
    done = shell("submit", "app:hf", "greet", b"name=\xff")
    assert (done.returncode, done.stderr) == (
        2,
        "holdfast: usage: 'name=\\udcff' is not valid UTF-8 (see 'holdfast --help')\n",
    )
