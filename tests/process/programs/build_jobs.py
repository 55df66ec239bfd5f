"""A build and a job that needs it, for processes that submit and work at the same time.

`python build_jobs.py FIRST COUNT` prints 'ready', waits for a line of input, submits COUNT runs and prints 'done'.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from holdfast import Context, Holdfast

hf = Holdfast(poll_interval=0.1, lease=float(os.environ.get("TEST_LEASE", "3")))
MARKS = Path(os.environ.get("TEST_MARKS", "."))


@hf.build(name="environment")
def environment(ctx: Context, configuration_id: str, fingerprint: str) -> str:
    with (MARKS / "built.txt").open("a") as file:
        file.write(f"{ctx.run.id} {os.getpid()}\n")
    while (MARKS / "hang").exists():
        ctx.check()
        time.sleep(0.02)
    return f"/environments/{configuration_id}"


@hf.build(name="endless", timeout=float(os.environ.get("TEST_TIMEOUT", "1")), isolation="process")
def endless(fingerprint: str) -> None:
    """Never checks for its timeout, and starts a child process."""
    child = subprocess.Popen(["sleep", "600"])
    part = MARKS / "pids.part"
    part.write_text(f"{os.getpid()} {child.pid}")
    part.rename(MARKS / "pids.txt")
    while True:
        pass


@hf.job(name="process")
def process(ctx: Context, number: int) -> str:
    return f"{number} in {ctx.dependencies[0]}"


@hf.job(name="isolated", isolation="process")
def isolated(ctx: Context) -> list[object]:
    return [*ctx.dependencies, list(ctx.run.depends_on)]


@hf.job(name="isolated_async", isolation="process")
async def isolated_async(ctx: Context) -> object:
    return ctx.dependencies[0]


def submit(first: int, count: int) -> None:
    """Submit the runs one by one from several threads, as a web application does."""
    request = environment.request(configuration_id="c1", fingerprint="f1")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(process.using(depends_on=[request]).submit, range(first, first + count)))


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    submit(int(sys.argv[1]), int(sys.argv[2]))
    print("done", flush=True)
