"""`holdfast worker`, as a real process: its output, its shutdown and its exit codes."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli import hostile_text
from tests.cli.conftest import Invoke, Shell, without_warnings
from tests.databases import sqlite
from tests.fixtures import reset_sigint_for_child_processes
from tests.waiting import wait_for

from holdfast import Holdfast, Run


def submit_work(shell: Shell, command: Invoke | Shell, hf: Holdfast) -> tuple[Run[str], Path]:
    """Submit a run that works until a file appears; return the run and the path of the file."""
    go = shell.folder / "until"
    done = command("submit", "app:hf", "work", f"started={shell.folder / 'started'}", f"until={go}")
    return hf.get(done.stdout.strip()), go


def has_started(shell: Shell) -> bool:
    return (shell.folder / "started").exists()


def ended(worker: subprocess.Popen[str]) -> tuple[int, str]:
    _, stderr = worker.communicate(timeout=60)
    return worker.returncode, stderr


def line_with(worker: subprocess.Popen[str], text: str) -> str:
    """Wait for the next line of standard error that contains this text."""
    assert worker.stderr is not None
    for line in worker.stderr:
        if text in line:
            return line
    raise AssertionError(f"the process ended without printing {text!r}")


def test_a_worker_prints_its_name_its_queues_and_its_database(shell: Shell) -> None:
    worker = shell.start("worker", "app:hf", "-q", "default, mail", "-c", "3", "--drain")
    code, stderr = ended(worker)
    first, last = without_warnings(stderr)
    assert code == 0
    assert f":{worker.pid}:worker:" in first
    assert "queues: default, mail; concurrency: 3" in first
    assert "letters.echo, letters.fail, letters.greet, " in first
    assert last == "no runs left; made 0 attempts"


def test_a_worker_warns_when_the_application_has_no_jobs(shell: Shell) -> None:
    code, stderr = ended(shell.start("worker", "app:empty", "--drain"))
    assert code == 0
    assert "warning: this application has no jobs" in stderr


@pytest.mark.contract("S5")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_running_work_finish(shell: Shell, inside: Invoke, number: signal.Signals) -> None:
    with Holdfast(shell.environment["HOLDFAST_URL"]) as hf:
        run, go = submit_work(shell, inside, hf)
        worker = shell.start("worker", "app:hf", HOLDFAST_SHUTDOWN_GRACE="50")
        wait_for(lambda: has_started(shell))
        worker.send_signal(number)
        line = line_with(worker, "stopping")
        assert "stopping: 1 run in progress, up to 50 s to finish; signal again to stop at once" in line
        waiting = inside("submit", "app:hf", "letters.greet", "name=Ada").stdout.strip()
        assert hf.why(run.id).run.state == "running"
        go.touch()
        code, stderr = ended(worker)
        assert code == 0
        assert stderr.endswith("stopped; all runs had finished\n")
        assert (run.refresh().state, hf.get(waiting).state) == ("succeeded", "queued")


def is_stopped_by(process: subprocess.Popen[str], number: signal.Signals) -> bool:
    """Send a signal, and return whether the process has ended. Call it repeatedly: signals within 2 s count as one."""
    process.send_signal(number)
    return process.poll() is not None


@pytest.mark.contract("S5")
def test_simultaneous_signals_count_as_one(shell: Shell, inside: Invoke) -> None:
    with Holdfast(shell.environment["HOLDFAST_URL"]) as hf:
        run, go = submit_work(shell, inside, hf)
        worker = shell.start("worker", "app:hf", HOLDFAST_SHUTDOWN_GRACE="50")
        wait_for(lambda: has_started(shell))
        for _ in range(3):
            worker.send_signal(signal.SIGTERM)
            worker.send_signal(signal.SIGINT)
        line_with(worker, "stopping")
        go.touch()
        code, stderr = ended(worker)
        assert (code, run.refresh().state) == (0, "succeeded"), stderr


@pytest.mark.contract("S5")
def test_an_idle_worker_exits_with_0_after_any_number_of_signals(shell: Shell) -> None:
    worker = shell.start("worker", "app:hf")
    line_with(worker, "queues: default")
    for _ in range(5):
        worker.send_signal(signal.SIGTERM)
    code, stderr = ended(worker)
    assert code == 0, stderr


@contextlib.contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Ignore SIGINT, as a shell script does for a process that it starts with `&`."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.contract("S5")
@pytest.mark.parametrize(
    ("command", "first_words"),
    [
        (("worker", "app:hf"), "queues: default"),
        (("orchestrator", "app:hf"), "started on"),
        (("serve", "app:hf", "--port", "0"), "serving"),
    ],
    ids=["worker", "orchestrator", "serve"],
)
def test_a_command_that_a_script_starts_in_the_background_handles_sigint(
    shell: Shell, command: tuple[str, ...], first_words: str
) -> None:
    with interrupts_ignored():
        started = shell.start(*command)
    line_with(started, first_words)
    started.send_signal(signal.SIGINT)
    code, stderr = ended(started)
    assert code == 0, stderr


def test_a_process_started_by_a_test_handles_sigint_when_the_tests_run_in_the_background() -> None:
    with interrupts_ignored():
        reset_sigint_for_child_processes()
        command = [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGINT).__name__)"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "default_int_handler\n"


@pytest.mark.contract("S5")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_runs_that_do_not_finish_in_time_are_released(store: str, request: pytest.FixtureRequest) -> None:
    shell: Shell = request.getfixturevalue("shell" if store == "sqlite" else "postgres_shell")
    with Holdfast(shell.environment["HOLDFAST_URL"]) as hf:
        run, _ = submit_work(shell, shell, hf)
        worker = shell.start("worker", "app:hf", HOLDFAST_SHUTDOWN_GRACE="0.2")
        wait_for(lambda: has_started(shell))
        worker.send_signal(signal.SIGTERM)
        code, stderr = ended(worker)
        assert code == 4
        assert stderr.endswith("stopped; unfinished runs were released and no attempt was used up\n")
        assert (run.refresh().state, run.snapshot.place, run.snapshot.attempt) == ("queued", "ready", 0)
        assert [event.kind for event in run.timeline()][-1] == "RUN_RELEASED"


@pytest.mark.contract("S5")
def test_a_second_signal_stops_the_worker_at_once_and_another_worker_takes_over(shell: Shell, inside: Invoke) -> None:
    with Holdfast(shell.environment["HOLDFAST_URL"]) as hf:
        run, go = submit_work(shell, inside, hf)
        worker = shell.start(
            "worker", "app:hf", HOLDFAST_SHUTDOWN_GRACE="600", HOLDFAST_LEASE="2", HOLDFAST_POLL_INTERVAL="0.05"
        )
        wait_for(lambda: has_started(shell))
        worker.send_signal(signal.SIGTERM)
        line_with(worker, "stopping")
        wait_for(lambda: is_stopped_by(worker, signal.SIGINT))
        code, stderr = ended(worker)
        assert (code, stderr) == (5, "stopped at once; other workers take over when the leases expire\n")
        assert run.refresh().state == "running"
        go.touch()
        successor = shell.start("worker", "app:hf", HOLDFAST_LEASE="2", HOLDFAST_POLL_INTERVAL="0.05")
        wait_for(lambda: run.refresh().snapshot.ended)
        assert (run.state, run.snapshot.takeovers) == ("succeeded", 1)
        assert successor.poll() is None


@pytest.mark.contract("J2")
def test_a_second_exclusive_worker_refuses_to_start_and_names_the_first(shell: Shell) -> None:
    first = shell.start("worker", "app:hf", "--exclusive", "nightly")
    assert first.stderr is not None
    assert next(line for line in first.stderr if ":nightly:" in line)
    done = shell("worker", "app:hf", "--exclusive", "nightly")
    line = done.stderr.splitlines()[-1]
    assert done.returncode == 7
    assert line.startswith("holdfast: worker_exists: ")
    assert f"pid {first.pid}" in line
    assert first.poll() is None


@pytest.mark.contract("J2")
def test_an_exclusive_worker_that_was_replaced_stops_without_a_traceback(shell: Shell, inside: Invoke) -> None:
    first = shell.start("worker", "app:hf", "--exclusive", "nightly")
    assert first.stderr is not None
    assert next(line for line in first.stderr if ":nightly:" in line)
    with contextlib.closing(sqlite.connect(shell.folder / "work.db", timeout=10)) as connection, connection:
        connection.execute("delete from holdfast_workers")
    inside("submit", "app:hf", "greet", "name=Ada")
    code, stderr = ended(first)
    assert code == 7
    assert stderr.splitlines()[-1].startswith("holdfast: worker_exists: ")
    assert "Traceback" not in stderr


def test_follow_shows_events_while_the_run_goes_on(shell: Shell, inside: Invoke) -> None:
    with Holdfast(shell.environment["HOLDFAST_URL"]) as hf:
        run, go = submit_work(shell, inside, hf)
        follower = shell.start("runs", "follow", "app:hf", run.id)
        assert follower.stdout is not None
        assert "RUN_QUEUED" in follower.stdout.readline()
        shell.start("worker", "app:hf")
        assert "RUN_STARTED" in follower.stdout.readline()
        go.touch()
        assert any("RUN_SUCCEEDED" in line for line in follower.stdout)
        assert follower.wait(timeout=60) == 0


def test_following_can_be_interrupted(shell: Shell, inside: Invoke) -> None:
    run_id = inside("submit", "app:hf", "greet", "name=Ada").stdout.strip()
    follower = shell.start("runs", "follow", "app:hf", run_id)
    assert follower.stdout is not None
    assert "RUN_QUEUED" in follower.stdout.readline()
    follower.send_signal(signal.SIGINT)
    assert ended(follower) == (130, "\nholdfast: interrupted: stopped by Ctrl-C\n")


def test_a_log_line_cannot_control_the_terminal(shell: Shell, inside: Invoke) -> None:
    inside("submit", "app:hf", "log", f"text={hostile_text.ALL}")
    code, stderr = ended(shell.start("worker", "app:hf", "--drain"))
    assert code == 0
    assert "WARNING letters: \\x1b[31mred" in stderr
    assert not hostile_text.control_characters(stderr)


def test_the_log_level_option_applies_to_stderr_but_not_to_the_stored_log(shell: Shell, inside: Invoke) -> None:
    with Holdfast(shell.environment["HOLDFAST_URL"]) as hf:
        run = hf.get(inside("submit", "app:hf", "log", "text=kept").stdout.strip())
        code, stderr = ended(shell.start("worker", "app:hf", "--drain", "--log-level", "error"))
        assert (code, "kept" in stderr) == (0, False)
        assert [event.data["message"] for event in run.timeline() if event.kind == "LOG"] == ["kept"]
