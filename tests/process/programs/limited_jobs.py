"""Jobs of a limited queue; `python limited_jobs.py COUNT` submits COUNT runs from several threads at once."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from marks import mark  # type: ignore[import-not-found]

from holdfast import Context, Holdfast, QueueFull

hf = Holdfast(os.environ["HOLDFAST_URL"], poll_interval=0.1, lease=3)
hf.queue(
    "default",
    max_queued=int(limit) if (limit := os.environ.get("TEST_MAX_QUEUED")) else None,
    concurrency=int(limit) if (limit := os.environ.get("TEST_CONCURRENCY")) else None,
)


@hf.job()
def work(ctx: Context, number: int) -> int:
    mark("start", ctx)
    time.sleep(0.02)
    mark("end", ctx)
    return number


@hf.job(rate="20/s")
def paced(ctx: Context, number: int) -> None: ...


@hf.job(unique="queued")
def only(name: str) -> None: ...


def submit(number: int) -> int:
    try:
        if os.environ.get("TEST_UNIQUE"):
            only.submit(name=str(number % 5))
        else:
            work.submit(number=number)
    except QueueFull:
        return 0
    return 1


if __name__ == "__main__":
    hf.start()
    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(8) as pool:
        print(sum(pool.map(submit, range(int(sys.argv[1])))), flush=True)
    hf.close()
