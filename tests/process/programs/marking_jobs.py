"""Jobs that record when they start and end, in a file outside the database."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from marks import mark  # type: ignore[import-not-found]

from holdfast import Context, Holdfast

hf = Holdfast(
    os.environ["HOLDFAST_URL"],
    poll_interval=0.1,
    lease=float(os.environ.get("TEST_LEASE", "2")),
    kill_grace=0.5,
    shutdown_grace=float(os.environ.get("TEST_SHUTDOWN_GRACE", "10")),
    single_process=os.environ.get("TEST_SOLO") == "1",
)
MARKS = Path(os.environ["TEST_MARKS"])


@hf.job()
def work(ctx: Context, number: int, seconds: float = 0.03) -> int:
    mark("start", ctx)
    time.sleep(seconds)
    mark("end", ctx)
    return number


@hf.job(timeout=None)
def wait(ctx: Context, go: str) -> int:
    """Waits until the file for this attempt exists."""
    mark("start", ctx)
    while not (MARKS / f"{go}-{ctx.run.claim}").exists():
        time.sleep(0.02)
    mark("end", ctx)
    return ctx.run.claim


@hf.job(timeout=None, isolation="process")
def wait_apart(ctx: Context, go: str) -> int:
    return int(wait.fn(ctx, go))


@hf.job(timeout=3, max_attempts=2)
async def neighbour(ctx: Context) -> int:
    """Takes one more second after another run has begun to block the event loop."""
    mark("start", ctx)
    try:
        while not (MARKS / "blocked").exists():
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        mark("step", ctx)
    finally:
        mark("cleared" if ctx.cancelled else "end", ctx)
    return ctx.run.claim


@hf.job(timeout=2, max_attempts=2)
async def block(ctx: Context, seconds: float) -> None:
    """Blocks the event loop that it shares with other runs."""
    mark("start", ctx)
    (MARKS / "blocked").touch()
    time.sleep(seconds)
    mark("end", ctx)
