"""Drain: how fast workers execute queued runs."""

from __future__ import annotations

import time

from bench import work
from holdfast import Holdfast

RUNS = 10_000


def threads(url: str) -> float:
    return _drain(url, "noop", concurrency=100)


def few_threads(url: str) -> float:
    return _drain(url, "noop", concurrency=8)


def coroutines(url: str) -> float:
    return _drain(url, "anoop", concurrency=100)


def keyed(url: str) -> float:
    with work.jobs(url) as hf:
        hf.jobs["keyed"].submit_many([{"key": str(number % 1000)} for number in range(RUNS)])
        return timed(hf, concurrency=100)


def two_workers(url: str) -> float:
    with work.jobs(url) as hf:
        hf.jobs["noop"].submit_many([{"x": number} for number in range(2 * RUNS)])
        processes = [work.start(url, drain=True) for _ in range(2)]
        started = time.perf_counter()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            process.wait()
        return 2 * RUNS / (time.perf_counter() - started)


def _drain(url: str, job: str, *, concurrency: int) -> float:
    with work.jobs(url) as hf:
        hf.jobs[job].submit_many([{"x": number} for number in range(RUNS)])
        return timed(hf, concurrency=concurrency)


def timed(hf: Holdfast, *, concurrency: int) -> float:
    """Return the runs per second until the worker has nothing left to do."""
    worker = hf.worker(concurrency=concurrency, drain=True)
    started = time.perf_counter()
    worker.start()
    worker.join()
    return RUNS / (time.perf_counter() - started)
