"""Submit: how fast runs are submitted, each durable when its call returns."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from bench import work


def one_by_one(url: str) -> float:
    with work.jobs(url) as hf:
        noop = hf.jobs["noop"]
        noop.submit(x=0)
        started = time.perf_counter()
        for number in range(1000):
            noop.submit(x=number)
        return 1000 / (time.perf_counter() - started)


def from_threads(url: str) -> float:
    with work.jobs(url) as hf, ThreadPoolExecutor(16) as pool:
        noop = hf.jobs["noop"]
        noop.submit(x=0)
        started = time.perf_counter()
        list(pool.map(lambda number: noop.submit(x=number), range(5000)))
        return 5000 / (time.perf_counter() - started)


def many(url: str) -> float:
    with work.jobs(url) as hf:
        noop = hf.jobs["noop"]
        noop.submit(x=0)
        started = time.perf_counter()
        for _ in range(20):
            noop.submit_many([{"x": number} for number in range(1000)])
        return 20_000 / (time.perf_counter() - started)
