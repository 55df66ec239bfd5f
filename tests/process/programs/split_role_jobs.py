"""A pipeline, and a separate job that shows that the worker or the orchestrator is active."""

from __future__ import annotations

import os

from holdfast import Holdfast

hf = Holdfast(os.environ["HOLDFAST_URL"], poll_interval=0.05, lease=3)
film = hf.pipeline("film")


@film.stage()
def script() -> list[int]:
    return [1, 2]


@film.stage(after=script)
def title(script: list[int]) -> str:
    return f"{len(script)} scenes"


@film.stage(after=script, each="number")
def audio(number: int) -> int:
    return number * 10


@film.stage(after=[title, audio])
def render(title: str, audio: list[int]) -> str:
    return f"{title}: {sum(audio)}"


@hf.job(name="beside")
def beside() -> None: ...
