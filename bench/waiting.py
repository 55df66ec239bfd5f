"""Waiting: whether waiting runs slow down others, and how fast a key passes from one run to the next."""

from __future__ import annotations

import time

from bench import drain, work
from holdfast import Holdfast
from holdfast.testing import Manual

WAITERS, KEYS, TURNS = 100_000, 10_000, 2_000


def beside_none(url: str) -> float:
    return _beside(url, keys=0)


def beside_one_key(url: str) -> float:
    return _beside(url, keys=1)


def beside_many_keys(url: str) -> float:
    return _beside(url, keys=KEYS)


def of_one_key(url: str) -> float:
    """Return the runs per second of one key; each run starts when the previous one has ended."""
    with work.jobs(url) as hf:
        hf.jobs["keyed"].submit_many([{"key": "only"}] * TURNS)
        worker = hf.worker(concurrency=100, drain=True)
        started = time.perf_counter()
        worker.start()
        worker.join()
        return TURNS / (time.perf_counter() - started)


def _beside(url: str, *, keys: int) -> float:
    """Drain a queue while 100,000 runs of another queue, which no worker serves, wait for their keys."""
    with work.jobs(url) as hf:
        if keys:
            _wait(hf, keys)
        hf.jobs["noop"].submit_many([{"x": number} for number in range(drain.RUNS)])
        return drain.timed(hf, concurrency=100)


def _wait(hf: Holdfast, keys: int) -> None:
    keyed = hf.jobs["keyed"].using(queue="elsewhere")
    for first in range(0, WAITERS, 10_000):
        keyed.submit_many([{"key": str(number % keys)} for number in range(first, first + 10_000)])
    Manual(hf).orchestrate()
