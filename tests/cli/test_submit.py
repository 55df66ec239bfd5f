"""holdfast submit, as a real process."""

from __future__ import annotations

import json

import pytest
from tests.cli import hostile
from tests.cli.conftest import Invoke, Shell
from tests.listing import runs_of

from holdfast import Holdfast, Snapshot
from holdfast.testing import Manual


def runs(shell: Shell) -> list[Snapshot]:
    with Holdfast(shell.environment["HOLDFAST_URL"]) as hf:
        return runs_of(hf)


def test_it_prints_the_id_alone(shell: Shell) -> None:
    done = shell("submit", "app:hf", "greet", "name=Ada", "times=3")
    [run] = runs(shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{run.id}\n", "")
    assert (run.job, run.args) == ("app.greet", {"name": "Ada", "times": 3})


def test_a_file_names_its_jobs_as_a_module_does(shell: Shell) -> None:
    shell("submit", "app.py:hf", "app.greet", "name=Ada")
    shell("submit", f"{shell.folder}/app.py:hf", "app.greet", "name=Ada")
    assert [run.job for run in runs(shell)] == ["app.greet", "app.greet"]


def test_every_option_reaches_the_run(shell: Shell) -> None:
    done = shell(
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


def test_text_stays_text_and_json_is_json(shell: Shell) -> None:
    shell("submit", "app:hf", "echo", "value=[1, 2]")
    shell("submit", "app:hf", "echo", "value:=[1, 2]")
    assert [run.args["value"] for run in runs(shell)] == [[1, 2], "[1, 2]"]


def test_wait_prints_the_result_and_the_exit_code_is_the_outcome(shell: Shell) -> None:
    worker = shell.start("worker", "app:hf")
    done = shell("submit", "app:hf", "app.greet", "name=Ada", "--wait", "--timeout", "30")
    assert (done.returncode, done.stdout) == (0, '"hello Ada"\n')
    done = shell("submit", "app:hf", "fail", f"text={hostile.ESCAPE}", "--wait", "--timeout", "30")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("holdfast: run_failed: run ")
    assert done.stderr.endswith("failed: ERROR: ValueError: \\x1b[31mred\\x1b[0m\n")
    done = shell("submit", "app:hf", "fail", "text=no", "--wait", "--timeout", "30", "--json")
    assert (done.returncode, json.loads(done.stdout)["failure_type"]) == (1, "ERROR")
    assert worker.poll() is None


def test_waiting_ends_with_its_timeout(shell: Shell) -> None:
    done = shell("submit", "app:hf", "fail", "text=no", "--wait", "--timeout", "0.1")
    assert done.returncode == 8
    assert done.stderr.startswith("holdfast: result_timeout: ")
    assert [run.state for run in runs(shell)] == ["queued"]


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["nothing"], "unknown_job", 3),
        (["greet_too"], "usage", 2),
        (["greet", "name"], "usage", 2),
        (["greet", "=x"], "usage", 2),
        (["greet", "name=a", "name=b"], "usage", 2),
        (["greet", "name:={"], "usage", 2),
        (["greet", "--json-args", "[1]"], "usage", 2),
        (["greet", "--json-args", "{}", "name=a"], "usage", 2),
        (["greet", "name=a", "--delay", "soon"], "usage", 2),
        (["greet", "name=a", "--tag", "b"], "usage", 2),
        (["greet", "--json-args", '{"name": "a", "name\\u0000": 1}'], "invalid_arguments", 2),
        (["app.greet", "times=2"], "invalid_arguments", 2),
        (["app.greet", "name=a", "times=many"], "invalid_arguments", 2),
        (["app.greet", "name=a", "other=b"], "invalid_arguments", 2),
        (["app.greet", "name=a", "--priority", "99999999999"], "invalid_policy", 2),
        (["app.greet", "name=a", "--key", ""], "invalid_arguments", 2),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line_and_nothing_is_written(
    shell: Shell, inside: Invoke, arguments: list[str], code: str, exit_code: int
) -> None:
    done = inside("submit", "app:hf", *arguments)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (exit_code, "", 1), done.stderr
    assert done.stderr.startswith(f"holdfast: {code}: ")
    assert runs(shell) == []


def test_an_idempotency_key_with_other_arguments_is_a_conflict(shell: Shell) -> None:
    first = shell("submit", "app:hf", "app.greet", "name=a", "--idempotency-key", "k")
    assert shell("submit", "app:hf", "app.greet", "name=a", "--idempotency-key", "k").stdout == first.stdout
    done = shell("submit", "app:hf", "app.greet", "name=b", "--idempotency-key", "k")
    assert (done.returncode, done.stderr.split(": ")[1]) == (1, "idempotency_conflict")


def test_hostile_arguments_go_in_and_come_back_as_they_were(shell: Shell) -> None:
    text = hostile.ALL
    shell("submit", "app:hf", "echo", f"value={text}", "--key", text[:100], "--tag", f"a={text}")
    [run] = runs(shell)
    assert (run.args["value"], run.key, run.tags) == (text, text[:100], {"a": text})


def test_an_argument_that_is_not_utf_8_is_refused(shell: Shell) -> None:
    done = shell("submit", "app:hf", "greet", b"name=\xff")
    assert (done.returncode, done.stderr) == (
        2,
        "holdfast: usage: 'name=\\udcff' is not valid UTF-8 (see 'holdfast --help')\n",
    )


@pytest.mark.contract("S4")
def test_a_job_that_only_its_code_starts_is_refused_and_the_address_is_named(shell: Shell) -> None:
    said = "holdfast: only_from_code: only the application itself starts runs of app.process; start one at /documents\n"
    done = shell("submit", "app:hf", "process", "document=a")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
    with Holdfast(shell.environment["HOLDFAST_URL"]) as hf:
        process = hf.job(name="app.process", only_from_code=True, start_at="/documents")(lambda document: document)
        run = process.submit(document="a")
        Manual(hf).run_all()
    for target in ("app:hf", shell.environment["HOLDFAST_URL"]):
        done = shell("runs", "again", target, run.id)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
    assert [one.id for one in runs(shell)] == [run.id]
