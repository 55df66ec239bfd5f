"""Pick-up: how long it takes from a submission in one process to the start of the run in another, idle process."""

from __future__ import annotations

import time
from functools import cache

from bench import work

RUNS = 200


def median(url: str) -> float:
    return _sorted(url)[RUNS // 2]


def worst(url: str) -> float:
    return _sorted(url)[RUNS * 99 // 100]


@cache
def _sorted(url: str) -> list[float]:
    worker = work.start(url, concurrency=8)
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()
    with work.jobs(url) as hf:
        stamp = hf.jobs["stamp"]
        stamp.submit().result(timeout=30)
        waits = []
        for _ in range(RUNS):
            time.sleep(0.02)
            submitted = time.time()
            run = stamp.submit()
            waits.append((run.result(timeout=30) - submitted) * 1000)
    worker.stdin.close()
    worker.wait()
    return sorted(waits)
