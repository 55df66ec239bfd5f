"""Isolated jobs, in a module that both worker and child process import."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

from holdfast import Context, Holdfast, Retry, StepNotFound, TryAgain

hf = Holdfast(
    os.environ.get("HOLDFAST_URL", "sqlite:///isolated.db"),
    poll_interval=0.05,
    lease=float(os.environ.get("TEST_LEASE", "3")),
    kill_grace=float(os.environ.get("TEST_KILL_GRACE", "0.5")),
    redact=[r"card (\d+)"],
)
SOON = Retry(delay=timedelta(milliseconds=10), jitter=0)


class Transient(Exception):
    pass


@hf.job(isolation="process")
def add(a: int, b: int) -> int:
    return a + b


@hf.job(isolation="process")
async def add_async(ctx: Context, a: int, b: int) -> int:
    async def sum_up() -> int:
        await asyncio.sleep(0)
        return a + b

    return await ctx.step("sum", sum_up)


@hf.job(isolation="process", max_attempts=2, retry=SOON)
def forgets(ctx: Context) -> list[str]:
    """Executes the step `begin` once in the first attempt and twice in the second."""
    first = ctx.step("begin", lambda: f"attempt {ctx.run.claim}")
    ctx.forget("begin")
    if ctx.run.claim == 1:
        raise Transient("the operation has failed")
    try:
        ctx.forget("begin")
    except StepNotFound as error:
        return [first, ctx.step("begin", lambda: "once more"), error.code]
    raise AssertionError("forgetting an unknown step must fail")


@hf.job(isolation="process", max_attempts=2, retry=SOON)
def everything(ctx: Context, folder: Path) -> dict[str, object]:
    """Uses every method of its context; the first attempt fails after the first step."""
    pid = ctx.step("once", os.getpid)
    if ctx.run.claim == 1:
        raise Transient("the first attempt fails")
    print("printed by", "the job")
    print("and to stderr", file=sys.stderr)
    ctx.log.warning("logged with password=hunter2")
    thread = threading.Thread(target=logging.getLogger("library").warning, args=("from a thread",))
    thread.start()
    thread.join()
    ctx.progress(1, 2, "half")
    made = folder / "made.txt"
    made.write_text("from a file")
    kept = [ctx.artifact("bytes.bin", b"\x00\x01"), ctx.artifact("file.txt", made)]
    calls: list[Path] = []

    def write(path: Path) -> None:
        calls.append(path)
        path.write_text("by a function")

    for _ in range(2):
        called = ctx.artifact("called.txt", write)
        assert (called.read(), called.size) == (b"by a function", 13)
    assert len(calls) == 1, "a complete artifact must not be created again"
    assert kept[0].path is not None
    assert kept[0].path.read_bytes() == b"\x00\x01"
    return {
        "first_pid": pid,
        "pid": os.getpid(),
        "claim": ctx.run.claim,
        "now": ctx.run.started_at.isoformat(),
        "artifacts": [one.name for one in kept],
    }


@hf.job(isolation="process", max_attempts=3, retry=Retry(on=(Transient,), delay=timedelta(0), jitter=0))
def fails(how: str) -> None:
    match how:
        case "transient":
            raise Transient("card 4711 was refused")
        case "again":
            raise TryAgain("come back", after=timedelta(seconds=0.01))
        case _:
            raise ValueError("card 4711 is wrong")


@hf.job(isolation="process")
def unstorable() -> object:
    return object()


@hf.job(isolation="process", timeout=None)
def busy(marks: Path, how: str) -> None:
    """Writes its pid and those of its children to `marks` and never returns; also reports pids that are still alive."""
    if marks.exists() and (alive := [pid for pid in marks.read_text().split() if Path(f"/proc/{pid}/fd").exists()]):
        marks.with_suffix(".overlap").write_text(f"still alive: {alive}")
    grandchild = subprocess.Popen(["sleep", "600"])
    escaped = subprocess.Popen(["sleep", "600"], start_new_session=True)
    if how == "ignores SIGTERM":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    temporary = marks.with_suffix(".part")
    temporary.write_text(f"{os.getpid()} {grandchild.pid} {escaped.pid}")
    temporary.rename(marks)
    match how:
        case "holds the GIL":
            sum(itertools.repeat(1))  # a loop in C that does not even check for signals
        case "sleeps in C with the GIL":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
            ctypes.PyDLL(None).sleep(600)
        case "regex":
            re.match(r"(a+)+$", "a" * 60 + "b")
        case "waits":
            time.sleep(600)
    while True:
        pass


@hf.job(isolation="process", timeout=None)
def tidy(marks: Path) -> None:
    """Cleans up when it is stopped."""
    try:
        marks.with_suffix(".started").touch()
        time.sleep(600)
    finally:
        marks.write_text("cleaned up")


@hf.job(isolation="process", timeout=None)
def counts(ctx: Context, marks: Path) -> None:
    """Reports progress seven times within a moment, then waits to be stopped."""
    for done in range(1, 8):
        ctx.progress(done)
    marks.write_text("counted")
    while True:
        signal.pause()


@hf.job(isolation="process", timeout=None)
async def tidy_async(marks: Path) -> None:
    try:
        marks.with_suffix(".started").touch()
        await asyncio.sleep(600)
    finally:
        marks.write_text("cleaned up")


@hf.job(isolation="process", max_attempts=2, retry=SOON)
def dies(ctx: Context, status: int, times: int) -> str:
    print("last words", file=sys.stderr)
    if ctx.run.claim <= times:
        if status < 0:
            os.kill(os.getpid(), -status)
        os._exit(status)
    return "survived"


@hf.job(isolation="process")
def leaves_behind(marks: Path) -> int:
    """Returns, but leaves a process behind."""
    left = subprocess.Popen(["sleep", "600"])
    marks.write_text(str(left.pid))
    return left.pid


@hf.job(isolation="process")
def talks(lines: int, width: int) -> None:
    for _ in range(lines):
        print("x" * width)
