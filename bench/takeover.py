"""Takeover: how long after kill -9 of a worker another worker has taken over its runs."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime

from bench import work
from holdfast import Holdfast

LEASE = 2.0
RUNS = 1000


def after_kill(url: str) -> float:
    """Return the seconds from the kill of a worker to the next start of its one run."""
    with work.jobs(url, lease=LEASE) as hf:
        run = hf.jobs["hang"].submit()
        first, second = _two_workers(url)
        _go(first)
        while run.refresh().state != "running":
            time.sleep(0.01)
        _go(second)
        time.sleep(2 * LEASE)  # after a lease, the second worker may take over runs
        first.kill()
        killed = time.perf_counter()
        while run.refresh().snapshot.takeovers == 0 or run.state != "running":
            time.sleep(0.005)
        took = time.perf_counter() - killed
        second.kill()
        first.wait()
        second.wait()
        return took


def among_a_thousand(url: str) -> float:
    """Kill one of two workers while they execute 1,000 runs; return the seconds until all its runs are taken over.

    Every run must succeed, and `verify` must find nothing.
    """
    with work.jobs(url, lease=LEASE) as hf:
        runs = hf.jobs["nap"].submit_many([{"seconds": 0.1}] * RUNS)
        first, second = _two_workers(url, concurrency=10)
        _go(first)
        _go(second)
        time.sleep(2 * LEASE)
        first.kill()
        killed = datetime.now(UTC)
        for run in runs:
            run.result(timeout=120)
        taken = _takeovers(hf)
        assert taken, "the killed worker had no runs"
        assert hf.verify() == []
        second.kill()
        first.wait()
        second.wait()
        return (max(taken) - killed).total_seconds()


def _takeovers(hf: Holdfast) -> list[datetime]:
    ids = [run.id for run in hf.search(limit=RUNS).items if run.takeovers]
    events = [event for run_id in ids for event in hf.timeline(run_id) if event.kind == "RUN_TAKEN_OVER"]
    return [event.happened_at for event in events if event.happened_at is not None]


def _two_workers(url: str, *, concurrency: int = 2) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    first, second = (work.start(url, concurrency=concurrency, lease=LEASE) for _ in range(2))
    return first, second


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
