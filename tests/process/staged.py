"""A pipeline and a family of runs that write down what they do, in a file that has nothing to do with the engine."""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast import Context, Holdfast

hf = Holdfast(os.environ["HOLDFAST_URL"], tick=0.1, lease=2, kill_grace=0.5)
film = hf.pipeline("film")
MARKS = Path(os.environ["TEST_MARKS"])


def mark(what: str, ctx: Context) -> None:
    """One line, written at once: several processes append to one file."""
    line = f"{time.clock_gettime(time.CLOCK_BOOTTIME)} {what} {ctx.run.id} {ctx.attempt} {os.getpid()}\n"
    descriptor = os.open(MARKS / "marks.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)


@film.stage()
def script(ctx: Context, count: int) -> list[int]:
    mark("start", ctx)
    mark("end", ctx)
    return list(range(count))


@film.stage(after=script, each="number")
def audio(ctx: Context, number: int) -> str:
    mark("start", ctx)
    time.sleep(0.1)
    mark("end", ctx)
    return f"a{number}"


@film.stage(after=audio, each="number")
async def visuals(ctx: Context, number: int, audio: str) -> str:
    mark("start", ctx)
    time.sleep(0.05)
    mark("end", ctx)
    return f"{audio}v{number}"


@film.stage(after=[visuals, audio], isolation="process", timeout=60)
def render(ctx: Context, visuals: list[str], audio: list[str], count: int) -> str:
    mark("start", ctx)
    mark("end", ctx)
    return f"{count}: {' '.join(visuals)}"


@hf.job()
def leaf(ctx: Context, number: int) -> int:
    mark("start", ctx)
    time.sleep(0.05)
    mark("end", ctx)
    return number


@hf.job(isolation="process", timeout=60)
def tree(ctx: Context, count: int) -> int:
    """In a process of its own: it asks its worker for everything."""
    return sum(ctx.gather(*(ctx.submit_child(leaf, number) for number in range(count))))
