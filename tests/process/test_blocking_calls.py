"""A worker process whose event loop is blocked by a job."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.process.support import WorkerProcess, marks
from tests.waiting import wait_for

from holdfast import RunFailed

Start = Callable[..., WorkerProcess]
NEIGHBOURS = 8


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest, load: Callable[..., Any]) -> Any:
    url: str = request.getfixturevalue(f"{request.param}_url")
    return load("marking_jobs", url, TEST_LEASE=6, TEST_SHUTDOWN_GRACE=1)


@pytest.mark.contract("P7", "S3")
def test_a_blocking_call_in_an_async_job_fails_no_other_run(app: Any, tmp_path: Path, start_worker: Start) -> None:
    neighbours = app.neighbour.submit_many([{}] * NEIGHBOURS)
    blocker = app.block.submit(seconds=10)
    worker = start_worker("marking_jobs", str(NEIGHBOURS + 1)).ready()
    assert [run.result(timeout=60) for run in neighbours] == [2] * NEIGHBOURS
    with pytest.raises(RunFailed):
        blocker.result(timeout=60)
    wait_for(lambda: sum(mark.what == "cleared" for mark in marks(tmp_path)) == NEIGHBOURS)
    worker.signal(signal.SIGTERM)
    assert worker.read_line() == "drained"

    assert (blocker.snapshot.state, blocker.snapshot.attempt) == ("timed_out", 1)
    assert {app.hf.snapshot(run.id).attempt for run in neighbours} == {1}
    [event] = [event for event in blocker.timeline() if event.kind == "LOOP_BLOCKED"]
    file, number = event.data["where"].rsplit(":", 1)
    assert file == app.__file__
    assert "time.sleep(seconds)" in Path(file).read_text().splitlines()[int(number) - 1]
    found = marks(tmp_path)
    first = [mark for mark in found if mark.claim == 1 and mark.run_id != blocker.id]
    assert {mark.what for mark in first} == {"start", "cleared"}, "a released attempt must not continue"
    assert sum(mark.what == "start" for mark in found) == 2 * NEIGHBOURS + 1
    assert app.hf.verify() == []


@pytest.mark.contract("S5")
def test_a_worker_with_a_blocked_loop_stops_on_sigterm(app: Any, tmp_path: Path, start_worker: Start) -> None:
    runs = [*app.neighbour.submit_many([{}] * 2), app.block.using(timeout=None).submit(seconds=120)]
    worker = start_worker("marking_jobs", "3").ready()
    wait_for(lambda: len(marks(tmp_path)) == 3)
    since = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.read_line() == "released"
    assert worker.process.wait(timeout=60) == 0
    assert time.monotonic() - since < 60
    assert {(app.hf.snapshot(run.id).place, app.hf.snapshot(run.id).attempt) for run in runs} == {("ready", 0)}


@pytest.mark.contract("S3")
def test_a_worker_process_that_was_suspended_reports_no_blocking_run(
    app: Any, tmp_path: Path, start_worker: Start
) -> None:
    (tmp_path / "blocked").touch()
    runs = app.neighbour.using(timeout=None).submit_many([{}] * NEIGHBOURS)
    worker = start_worker("marking_jobs", str(NEIGHBOURS)).ready()
    wait_for(lambda: sum(mark.what == "start" for mark in marks(tmp_path)) == NEIGHBOURS)
    worker.signal(signal.SIGSTOP)
    time.sleep(3)  # the time for which the process is suspended
    worker.signal(signal.SIGCONT)
    assert [run.result(timeout=60) for run in runs] == [1] * NEIGHBOURS
    assert not [event for run in runs for event in run.timeline() if event.kind == "LOOP_BLOCKED"]
