"""Jobs that block their worker, and other jobs that only wait."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time

from marks import mark  # type: ignore[import-not-found]

from holdfast import Context, Holdfast

hf = Holdfast(
    os.environ["HOLDFAST_URL"],
    poll_interval=0.1,
    lease=float(os.environ.get("TEST_LEASE", "6")),
    kill_grace=1,
    guardian=os.environ.get("TEST_GUARDIAN", "1") == "1",
)


@hf.job(timeout=None)
def hold(ctx: Context, seconds: int) -> int:
    """Hold the interpreter lock, as a long regular expression does: no other thread runs meanwhile."""
    mark("start", ctx)
    if ctx.run.claim == 1:
        ctypes.PyDLL(None).sleep(seconds)
    mark("end", ctx)
    return ctx.run.claim


@hf.job(timeout=2)
def hold_past_the_timeout(ctx: Context) -> None:
    mark("start", ctx)
    ctypes.PyDLL(None).sleep(120)


@hf.job(timeout=None)
def in_thread(ctx: Context, seconds: float) -> int:
    mark("start", ctx)
    time.sleep(seconds)
    mark("end", ctx)
    return ctx.run.claim


@hf.job(timeout=None)
async def in_loop(ctx: Context, seconds: float) -> int:
    mark("start", ctx)
    await asyncio.sleep(seconds)
    mark("end", ctx)
    return ctx.run.claim


@hf.job(timeout=None, isolation="process")
def in_process(ctx: Context, seconds: float) -> int:
    mark("start", ctx)
    time.sleep(seconds)
    mark("end", ctx)
    return ctx.run.claim


@hf.job(timeout=None)
def never_stops(ctx: Context) -> int:
    """The first attempt never checks whether it should stop, and keeps writing marks."""
    mark("start", ctx)
    while ctx.run.claim == 1:
        mark("tick", ctx)
        time.sleep(0.02)
    mark("end", ctx)
    return ctx.run.claim
