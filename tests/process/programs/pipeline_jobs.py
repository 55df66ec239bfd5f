"""A pipeline, and a job with children, that write marks to a file outside the database."""

from __future__ import annotations

import os
import time

from marks import mark  # type: ignore[import-not-found]

from holdfast import Context, Holdfast

hf = Holdfast(os.environ["HOLDFAST_URL"], poll_interval=0.1, lease=2, kill_grace=0.5)
film = hf.pipeline("film")


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
    """An isolated parent: its process submits and gathers its children through the worker."""
    return sum(ctx.gather(*(ctx.submit_child(leaf, number) for number in range(count))))
