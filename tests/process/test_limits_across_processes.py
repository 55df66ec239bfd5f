"""Limits across processes: queue capacity, queue concurrency and rates."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.process.support import PROGRAMS, WorkerProcess, marks
from tests.python_process import PythonProcess
from tests.waiting import wait_for

Start = Callable[..., WorkerProcess]

pytestmark = pytest.mark.timeout(240)


def submit_from_processes(each: int) -> list[int]:
    """Start four processes that submit at the same time; return how many submissions of each were accepted."""
    processes = [
        PythonProcess(
            [sys.executable, str(PROGRAMS / "limited_jobs.py"), str(each)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [int(process.communicate(timeout=120)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def count(app: Any, table: str) -> int:
    """The number of rows of a table, counted with SQL."""
    with app.hf.store.reading() as tx:
        rows, _, _ = tx._session.execute(f"select count(*) from holdfast_{table}", None)
    found: int = rows[0][0]
    return found


@pytest.mark.contract("Q8")
def test_a_thousand_submissions_from_four_processes_fill_a_queue_of_a_hundred_exactly(
    load: Callable[..., Any], local_url: str
) -> None:
    app = load("limited_jobs", local_url, TEST_MAX_QUEUED=100)
    app.hf.start()

    accepted = submit_from_processes(250)

    assert sum(accepted) == 100
    assert {table: count(app, table) for table in ("runs", "ready", "queue_capacity", "waits", "events")} == {
        "runs": 100,
        "ready": 100,
        "queue_capacity": 100,
        "waits": 0,
        "events": 0,
    }
    assert app.hf.verify() == []


def test_four_processes_that_submit_the_same_unique_runs_create_each_once(
    load: Callable[..., Any], local_url: str
) -> None:
    app = load("limited_jobs", local_url, TEST_UNIQUE=1)
    app.hf.start()
    assert sum(submit_from_processes(50)) == 200
    assert count(app, "runs") == 5


@pytest.mark.contract("Q9")
def test_four_workers_never_exceed_the_concurrency_of_a_queue(
    load: Callable[..., Any], local_url: str, tmp_path: Path, start_worker: Start
) -> None:
    app = load("limited_jobs", local_url, TEST_CONCURRENCY=4)
    # Each worker runs at most two of the four runs, and all workers start first, so several must get runs.
    workers = [start_worker("limited_jobs", "2") for _ in range(4)]
    for worker in workers:
        worker.ready()
    runs = app.work.submit_many([{"number": number} for number in range(120)])
    wait_for(lambda: all(app.hf.snapshot(run.id).ended for run in reversed(runs)), at_most=90)

    found = sorted(marks(tmp_path), key=lambda mark: mark.at)
    running, most = 0, 0
    for mark in found:
        running += 1 if mark.what == "start" else -1
        most = max(most, running)
    assert most <= 4
    assert len({mark.pid for mark in found}) > 1, "one worker executed every run"
    assert [run.result(timeout=1) for run in runs] == list(range(120))
    assert app.hf.verify() == []


def test_two_workers_keep_to_one_rate(load: Callable[..., Any], local_url: str, start_worker: Start) -> None:
    app = load("limited_jobs", local_url)
    runs = app.paced.submit_many([{"number": number} for number in range(70)])
    for worker in [start_worker("limited_jobs", "8") for _ in range(2)]:
        worker.ready()
    wait_for(lambda: all(app.hf.snapshot(run.id).ended for run in reversed(runs)), at_most=60)
    starts = sorted(app.hf.snapshot(run.id).started_at for run in runs)
    assert max(sum(start <= other < start + timedelta(seconds=1) for other in starts) for start in starts) <= 20
