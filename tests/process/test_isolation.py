"""Isolated runs: the data that the processes exchange, and how the processes end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.process.support import gone
from tests.waiting import wait_for

from holdfast import Holdfast, RunFailed
from holdfast.worker.isolation import output

RESPONSIVE = ["loops", "waits", "regex"]
UNRESPONSIVE = ["ignores SIGTERM", "holds the GIL", "sleeps in C with the GIL"]


def marked(marks: Path) -> list[int]:
    """The pids that a `busy` run has written to this file."""
    return [int(pid) for pid in wait_for(lambda: marks.exists() and marks.read_text(), what=str(marks)).split()]


def seconds_to_start(app: Any) -> float:
    """How long a short isolated run currently takes on this machine."""
    asked_at = time.monotonic()
    app.add.submit(1, 2).result(timeout=60)
    return time.monotonic() - asked_at


def events(app: Any, run_id: str, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in app.hf.timeline(run_id) if event.kind == kind]


@pytest.mark.contract("Q9")
def test_an_isolated_run_sends_results_steps_events_and_artifacts(
    load: Callable[..., Any], url: str, tmp_path: Path
) -> None:
    app = load("isolated_jobs", url)
    with app.hf.worker(concurrency=2):
        plain, later, run = app.add.submit(1, 2), app.add_async.submit(3, 4), app.everything.submit(tmp_path)
        assert plain.result(timeout=60) == 3
        assert later.result(timeout=60) == 7
        result = run.result(timeout=60)

    assert result["claim"] == 2
    assert result["first_pid"] != result["pid"], "the second attempt must reuse the step's result of the first"
    assert os.getpid() not in (result["first_pid"], result["pid"])
    logs = [(log["logger"], log["message"]) for log in events(app, run.id, "LOG")]
    assert ("stdout", "printed by the job") in logs
    assert ("stderr", "and to stderr") in logs
    assert ("library", "from a thread") in logs
    assert any(message == "logged with password=[redacted]" for _, message in logs)
    assert events(app, run.id, "PROGRESS") == [{"done": 1, "total": 2, "note": "half"}]
    kept = {path.name: path.read_bytes() for path in (tmp_path / "artifacts").rglob("*.*") if path.is_file()}
    assert kept == {"bytes.bin": b"\x00\x01", "file.txt": b"from a file", "called.txt": b"by a function"}
    assert [found.name for found in app.hf.artifacts.of(run.id)] == ["bytes.bin", "called.txt", "file.txt"]
    assert app.hf.verify() == []


@pytest.mark.contract("P6", "Q9")
def test_an_isolated_run_can_forget_steps(app: Any) -> None:
    with app.hf.worker():
        run = app.forgets.submit()
        assert run.result(timeout=60) == ["attempt 2", "once more", "step_not_found"]
    kinds = [event.kind for event in app.hf.timeline(run.id)]
    assert (kinds.count("STEP_FINISHED"), kinds.count("STEP_FORGOTTEN")) == (3, 2)


@pytest.mark.parametrize(("how", "attempt"), [("transient", 3), ("again", 3), ("wrong", 1)])
def test_an_isolated_run_sends_errors_as_text_and_decides_whether_to_retry(app: Any, how: str, attempt: int) -> None:
    with app.hf.worker():
        run = app.fails.submit(how)
        with pytest.raises(RunFailed):
            run.result(timeout=60)
    snapshot = run.refresh().snapshot
    assert (snapshot.failure_type, snapshot.attempt) == ("ERROR", attempt)
    if how == "again":
        assert snapshot.error == "come back", "the message without a traceback"
    else:
        assert "isolated_jobs.py" in snapshot.error
    assert "4711" not in snapshot.error


def test_a_result_that_cannot_be_stored_fails_the_run(app: Any) -> None:
    with app.hf.worker():
        run = app.unstorable.submit()
        with pytest.raises(RunFailed):
            run.result(timeout=60)
    assert run.refresh().snapshot.failure_type == "RESULT_NOT_STORABLE"


@pytest.mark.contract("P7", "Q13")
@pytest.mark.parametrize("how", [*RESPONSIVE, *UNRESPONSIVE])
def test_a_timeout_ends_the_process_and_its_child_processes(
    load: Callable[..., Any], sqlite_url: str, tmp_path: Path, how: str
) -> None:
    # A responsive job has a long grace period for a busy machine; an unresponsive job always uses up its period.
    app = load("isolated_jobs", sqlite_url, TEST_KILL_GRACE=0.5 if how in UNRESPONSIVE else 20)
    with app.hf.worker():
        timeout = max(2, 3 * seconds_to_start(app))
        run = app.busy.using(timeout=timeout).submit(tmp_path / "marks", how)
        processes = marked(tmp_path / "marks")
        with pytest.raises(RunFailed):
            run.result(timeout=timeout + 25)

    snapshot = run.refresh().snapshot
    assert snapshot.state == "timed_out"
    assert f"process {'killed' if how in UNRESPONSIVE else 'ended'}" in snapshot.error
    assert len(processes) == 3
    assert all(gone(pid) for pid in processes), (
        "the process, its child, and a child in another process group must be gone"
    )


def test_the_last_events_of_a_stopped_process_are_stored(app: Any, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    with app.hf.worker():
        run = app.counts.submit(marks)
        wait_for(marks.exists)
        run.cancel()
        with pytest.raises(RunFailed):
            run.result(timeout=60)
    assert [data["done"] for data in events(app, run.id, "PROGRESS")] == [1, 7]


@pytest.mark.contract("Q15")
@pytest.mark.parametrize("how", ["waits", "holds the GIL"])
def test_cancelling_a_run_ends_its_process(app: Any, tmp_path: Path, how: str) -> None:
    with app.hf.worker():
        run = app.busy.submit(tmp_path / "marks", how)
        processes = marked(tmp_path / "marks")
        assert run.cancel(reason="not wanted any more") == "running"
        with pytest.raises(RunFailed):
            run.result(timeout=60)
        assert all(gone(pid) for pid in processes)
    snapshot = run.refresh().snapshot
    assert snapshot.state == "cancelled"
    assert "not wanted any more" in snapshot.error
    assert "after the stop signal" in snapshot.error


@pytest.mark.parametrize("job", ["tidy", "tidy_async"])
def test_a_stopped_process_can_clean_up(app: Any, tmp_path: Path, job: str) -> None:
    marks = tmp_path / "marks"
    with app.hf.worker():
        run = getattr(app, job).submit(marks)
        wait_for(marks.with_suffix(".started").exists)
        run.cancel()
        with pytest.raises(RunFailed):
            run.result(timeout=60)
    assert marks.read_text() == "cleaned up"
    assert run.refresh().state == "cancelled"


@pytest.mark.contract("S5")
def test_shutdown_ends_the_process_and_releases_the_run_without_using_an_attempt(app: Any, tmp_path: Path) -> None:
    worker = app.hf.worker()
    worker.start()
    run = app.busy.submit(tmp_path / "marks", "waits")
    processes = marked(tmp_path / "marks")
    assert worker.stop(grace=app.hf.settings.poll_interval) == "released"
    assert all(gone(pid) for pid in processes)
    snapshot = run.refresh().snapshot
    assert (snapshot.state, snapshot.place, snapshot.attempt) == ("queued", "ready", 0)


@pytest.mark.parametrize(
    ("status", "text"),
    [(-signal.SIGKILL, "killed by signal 9 (SIGKILL)"), (-signal.SIGSEGV, "signal 11"), (3, "exit code 3")],
)
def test_a_process_that_dies_without_a_result_is_a_failed_attempt(app: Any, status: int, text: str) -> None:
    with app.hf.worker():
        once, always = app.dies.submit(status, 1), app.dies.submit(status, 9)
        assert once.result(timeout=60) == "survived"
        with pytest.raises(RunFailed):
            always.result(timeout=60)
    snapshot = always.refresh().snapshot
    assert (snapshot.state, snapshot.failure_type, snapshot.attempt) == ("failed", "PROCESS_TERMINATED", 2)
    assert text in snapshot.error
    assert "last words" in snapshot.error


def test_killing_the_supervisor_of_an_isolated_run_ends_the_run(app: Any, tmp_path: Path) -> None:
    with app.hf.worker():
        run = app.busy.submit(tmp_path / "marks", "waits")
        worker, grandchild, _ = marked(tmp_path / "marks")
        os.kill(_parent_of(worker), signal.SIGKILL)
        with pytest.raises(RunFailed):
            run.result(timeout=60)
        wait_for(lambda: gone(worker) and gone(grandchild))
    assert run.refresh().snapshot.failure_type == "PROCESS_TERMINATED"
    # Only the killed supervisor knew of the child in another process group, so the test kills this child.
    os.kill(marked(tmp_path / "marks")[2], signal.SIGKILL)


def test_no_process_that_a_run_started_outlives_it(app: Any, tmp_path: Path) -> None:
    with app.hf.worker():
        left = app.leaves_behind.submit(tmp_path / "marks").result(timeout=60)
    assert gone(left)


def test_the_output_of_an_isolated_run_is_bounded(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_LINES", 20)
    with app.hf.worker():
        many, wide = app.talks.submit(5000, 10), app.talks.submit(1, 500_000)
        many.result(timeout=60)
        wide.result(timeout=60)
    assert len(events(app, many.id, "LOG")) == 21
    assert "is not stored" in events(app, many.id, "LOG")[-1]["message"]
    assert max(len(log["message"]) for log in events(app, wide.id, "LOG")) <= output.MAX_LINE + 1


def test_a_function_that_cannot_be_imported_fails_with_a_clear_reason(sqlite_url: str) -> None:
    with Holdfast(sqlite_url, poll_interval=0.05, lease=3) as hf:

        @hf.job(isolation="process")
        def local() -> None: ...

        with hf.worker():
            run = local.submit()
            with pytest.raises(RunFailed, match="another process can import"):
                run.result(timeout=60)
    assert run.snapshot.failure_type == "JOB_NOT_LOADED"


def test_a_module_that_cannot_be_loaded_in_the_process_fails_the_run(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_LEASE", "not a number")
    with app.hf.worker():
        run = app.add.submit(1, 2)
        with pytest.raises(RunFailed, match="could not convert string to float"):
            run.result(timeout=60)
    assert run.snapshot.failure_type == "JOB_NOT_LOADED"


def test_a_script_runs_its_own_jobs_in_processes(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        f"""
import os
from holdfast import Holdfast, Worker

hf = Holdfast("sqlite:///{tmp_path}/work.db", poll_interval=0.05, lease=3)

@hf.job()
def other() -> int:
    return os.getpid()

@hf.job(isolation="process")
def mine() -> list[object]:
    return [os.getpid(), __name__, other.submit().id]

if __name__ == "__main__":
    with hf.worker():
        pid, name, other_id = mine.submit().result(timeout=60)
        print(pid != os.getpid(), name, hf.get(other_id).result(timeout=60) == os.getpid())
"""
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["True", "__holdfast_main__", "True"], done.stderr


def test_the_arguments_of_a_run_are_not_on_a_command_line(app: Any, tmp_path: Path) -> None:
    with app.hf.worker():
        run = app.busy.submit(tmp_path / "secret-marks", "waits")
        process, *_ = marked(tmp_path / "secret-marks")
        for pid in (process, _parent_of(process)):
            assert b"secret" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        run.cancel()
        with pytest.raises(RunFailed):
            run.result(timeout=60)


@pytest.mark.contract("L7")
def test_killing_a_worker_ends_the_processes_of_its_runs(
    app: Any, tmp_path: Path, start_worker: Callable[..., Any]
) -> None:
    worker = start_worker("isolated_jobs").ready()
    run = app.busy.using(on_crash="fail").submit(tmp_path / "marks", "holds the GIL")
    processes = marked(tmp_path / "marks")
    worker.signal(signal.SIGKILL)
    wait_for(lambda: all(gone(pid) for pid in processes))
    with app.hf.worker(), pytest.raises(RunFailed):
        run.result(timeout=60)
    assert run.refresh().snapshot.failure_type == "PROCESS_TERMINATED"


@pytest.mark.contract("L7", "L5")
def test_the_process_of_a_suspended_worker_ends_before_another_worker_claims_its_run(
    load: Callable[..., Any], sqlite_url: str, tmp_path: Path, start_worker: Callable[..., Any]
) -> None:
    app = load("isolated_jobs", sqlite_url, TEST_LEASE=2)
    marks = tmp_path / "marks"
    suspended = start_worker("isolated_jobs").ready()
    run = app.busy.submit(marks, "holds the GIL")
    processes = marked(marks)
    held = run.refresh().snapshot
    with app.hf.worker():
        suspended.signal(signal.SIGSTOP)
        wait_for(lambda: all(gone(pid) for pid in processes))
        wait_for(lambda: marked(marks) != processes)
        assert not marks.with_suffix(".overlap").exists(), marks.with_suffix(".overlap").read_text()
        assert run.refresh().snapshot.claim == held.claim + 1

        suspended.signal(signal.SIGCONT)
        suspended.signal(signal.SIGTERM)
        suspended.process.wait(timeout=60)
        assert run.refresh().state == "running", "the suspended worker must change nothing after it resumes"
        run.cancel()
        with pytest.raises(RunFailed):
            run.result(timeout=60)
    assert run.refresh().snapshot.holder != held.holder
    assert app.hf.verify() == []


@pytest.mark.contract("P2", "J7")
def test_the_next_run_of_a_key_starts_after_the_process_of_the_killed_one_has_ended(app: Any, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    with app.hf.worker(concurrency=2):
        job = app.busy.using(key="marks", timeout=2.0)
        first, second = job.submit(marks, "holds the GIL"), job.submit(marks, "waits")
        for run in (first, second):
            with pytest.raises(RunFailed):
                run.result(timeout=60)
    assert [run.refresh().state for run in (first, second)] == ["timed_out", "timed_out"]
    assert second.snapshot.started_at >= first.snapshot.finished_at
    assert not marks.with_suffix(".overlap").exists(), marks.with_suffix(".overlap").read_text()


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
