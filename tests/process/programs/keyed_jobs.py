"""Keyed jobs that mark when they start and end; `python keyed_jobs.py COUNT` submits runs and prints their ids."""

from __future__ import annotations

import os
import sys
import time

from marks import mark  # type: ignore[import-not-found]

from holdfast import Context, Holdfast

hf = Holdfast(os.environ["HOLDFAST_URL"], poll_interval=0.1, lease=float(os.environ["TEST_LEASE"]))


@hf.job(key="key", on_crash="requeue", max_takeovers=100)
def work(ctx: Context, key: str, number: int) -> int:
    mark("start", ctx)
    time.sleep(0.02)
    mark("end", ctx)
    return number


def main(count: int) -> int:
    for number in range(count):
        print(work.submit(key=f"key {number % 50}", number=number).id, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
