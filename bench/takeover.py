"""How long after kill -9 of a worker another one has its runs."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime

from bench import work
from holdfast import Holdfast

LEASE = 2.0
RUNS = 1000


def after_kill(url: str) -> float:
    """One run, from the kill to its next start."""
    with work.jobs(url, lease=LEASE) as hf:
        run = hf.jobs["hang"].submit()
        first, second = _two_workers(url)
        _go(first)
        while run.refresh().state != "running":
            time.sleep(0.01)
        _go(second)
        time.sleep(2 * LEASE)  # the second has been alive for a lease and may judge
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
    """Two workers in the middle of 1,000 runs, one is killed: from the kill to the last run that was taken from it.

    Every run has to succeed and `verify` to find nothing, or there is no figure.
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
        assert taken, "the worker that was killed had nothing in hand"
        assert hf.verify() == []
        second.kill()
        first.wait()
        second.wait()
        return (max(taken) - killed).total_seconds()


def _takeovers(hf: Holdfast) -> list[datetime]:
    ids = [found.id for found in hf.search(limit=RUNS).items if found.takeovers]
    told = [event for run_id in ids for event in hf.story(run_id) if event.kind == "RUN_TAKEN_OVER"]
    return [event.happened_at for event in told if event.happened_at is not None]


def _two_workers(url: str, *, concurrency: int = 2) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    first, second = (work.start(url, concurrency=concurrency, lease=LEASE) for _ in range(2))
    return first, second


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
