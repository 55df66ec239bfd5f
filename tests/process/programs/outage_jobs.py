"""Jobs for outages: the database is locked, or all workers are gone."""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast import Context, Holdfast

hf = Holdfast(
    os.environ.get("HOLDFAST_URL", "sqlite:///outages.db"),
    poll_interval=0.1,
    lease=float(os.environ.get("TEST_LEASE", "2")),
    busy_timeout=float(os.environ.get("TEST_BUSY_TIMEOUT", "1")),
)


@hf.job()
def small(number: int) -> int:
    return number


def write_everything(ctx: Context, folder: Path) -> int:
    """Begin, wait until the database is locked, then write everything that a job can write."""
    ctx.step("before", lambda: 1)
    (folder / f"begun-{ctx.run.id}-{ctx.run.claim}").touch()
    while not (folder / "locked").exists():
        ctx.check()
        time.sleep(0.02)
    ctx.progress(1, 2)
    ctx.log.info("the database is locked")
    during = ctx.step("during", lambda: 2)
    ctx.artifact("out.txt", b"written after the lock")
    ctx.submit_child(small, during)
    return ctx.run.claim


@hf.job(max_attempts=1, on_crash="fail")
def in_thread(ctx: Context, folder: Path) -> int:
    return write_everything(ctx, folder)


@hf.job(max_attempts=1, on_crash="fail", isolation="process")
def in_process(ctx: Context, folder: Path) -> int:
    return write_everything(ctx, folder)


@hf.job(timeout=4, max_attempts=1, on_crash="requeue")
def hangs_once(ctx: Context, folder: Path) -> int:
    """The first attempt never returns."""
    (folder / f"begun-{ctx.run.id}-{ctx.run.claim}").touch()
    while ctx.run.claim == 1:
        time.sleep(0.02)
    return ctx.run.claim
