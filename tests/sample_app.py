"""The application that the tests of the API, client and commands share: jobs, schedules, a build and a pipeline."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast import Context, Holdfast


@contextmanager
def sample_app(folder: Path) -> Iterator[Holdfast]:
    """The application on a SQLite file in the folder, without a worker."""
    with Holdfast(f"sqlite:///{folder / 'work.db'}", artifacts=folder / "artifacts", poll_interval=0.05) as hf:
        declare(hf)
        yield hf


def declare(hf: Holdfast) -> None:
    """Jobs, a build, schedules, a pipeline and a bounded queue."""

    @hf.job(name="letters.greet", key="name")
    def greet(ctx: Context, name: str, times: int = 1) -> dict[str, Any]:
        """Greets someone. Lists show only the first sentence."""
        ctx.log.info("to %s", name)
        ctx.log.error("printer offline")
        ctx.progress(1, 2, "half")
        ctx.artifact("letter.txt", f"Dear {name}".encode())
        return {"said": ctx.step("write", lambda: f"hello {name}"), "times": times}

    @hf.job(name="letters.fail", queue="risky")
    def fail(text: str = "printer offline") -> None:
        logging.getLogger("letters").warning(text)
        raise ValueError(text)

    @hf.job(name="letters.echo")
    def echo(value: Any) -> Any:
        return value

    @hf.job(name="letters.log")
    def log(text: str) -> None:
        logging.getLogger("letters").warning(text)

    @hf.job(name="letters.work")
    def work(ctx: Context, started: str, until: str) -> str:
        """Creates the file `started`, and works until the file `until` exists."""
        ctx.log.warning("half way")
        ctx.progress(1, 2, "the first half")
        Path(started).touch()
        while not Path(until).exists():
            ctx.check()
            time.sleep(0.01)
        return "worked"

    @hf.job(name="letters.process", only_from_code=True, start_at="/documents")
    def process(document: str) -> str:
        return document

    for name in ("mine.greet_too", "yours.greet_too"):
        hf.job(name=name)(lambda: None)

    @hf.job(name="letters.reverse")
    def reverse(content: bytes, at: datetime) -> tuple[bytes, datetime]:
        return content[::-1], at

    @hf.build(name="environments.install", queue="default")
    def install(package: str, fingerprint: str) -> str:
        return f"{package}-{fingerprint}"

    @hf.schedule(every=timedelta(days=1), name="letters.daily")
    def daily() -> None: ...

    @hf.schedule(every=timedelta(days=365), name="letters.yearly", queue="nowhere")
    def yearly() -> None: ...

    film = hf.pipeline("film")

    @film.stage()
    def script(text: str) -> list[str]:
        return text.split()

    @film.stage(after=script, each="word")
    def audio(word: str) -> str:
        return word.upper()

    @film.stage(after=audio)
    def render(segments: list[str]) -> str:
        return " ".join(segments)

    hf.queue("small", max_queued=1)
