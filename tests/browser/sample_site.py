"""Sample site: an application with data on every page, its worker and its server, for tests in a browser."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.contract.helpers.workers import register
from tests.listing import runs_of
from tests.sample_app import declare
from tests.web.conftest import Server, serving

from holdfast import Context, Holdfast, Run
from holdfast.schedules import slots
from holdfast.schedules.slots import Decision
from holdfast.store.transaction import Transaction
from holdfast.values.schedules import Decided

QUEUES = ("default", "documents", "risky", "operations")
HOSTILE = (
    "<script>document.title = 'injected'</script><img src=x onerror=\"document.title='injected'\"></pre></textarea> "
    "{{ 7*7 }} \x1b[31mred\x1b[0m \x07 \u202egnp.exe\u2066 \u2028 'single' \"double\" `tick` &lt;b&gt; \u200f\u200e end"
)


class SampleSite:
    """The sample application with a pipeline of many segments; the tests of a module share it.

    open     let the run of `work` with this name finish
    server   the HTTP server of its dashboard
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hf = hf = Holdfast(
            f"sqlite:///{folder / 'site.db'}",
            artifacts=folder / "artifacts",
            poll_interval=0.1,
            lease=6,
            max_args_bytes=7_000_000,
        )
        declare(hf)
        movie = hf.pipeline("movie")

        @movie.stage()
        def script(ctx: Context, scenes: int) -> list[int]:
            return ctx.segments(list(range(scenes)))

        @movie.stage(after=script, each="scene", on_error="continue")
        def audio(scene: int) -> int:
            if scene == 3:
                raise ValueError("no voice for scene 3")
            return scene

        @movie.stage(after=script, each="scene")
        def images(scene: int) -> int:
            return scene

        @movie.stage(after=[audio, images], on_error="continue")
        def cut(audio: list[int]) -> int:
            return len(audio)

        @movie.stage(after=[cut, script])
        def publish(ctx: Context, cut: int) -> str:
            while not (folder / "publish").exists():
                ctx.check()
                time.sleep(0.01)
            return f"{cut} scenes"

        self.server: Server = None  # type: ignore[assignment]

    def open(self, name: str) -> None:
        (self.folder / name).touch()

    def submit(self, job: str, /, **arguments: Any) -> Run[Any]:
        return self.hf.jobs[job].submit(**arguments)

    def work(self, name: str, *, key: str) -> Run[Any]:
        """Submit a run that works until `open` is called with its name."""
        job = self.hf.jobs["letters.work"].using(queue="documents", key=lambda **_: key)
        return job.submit(started=str(self.folder / f"{name} began"), until=str(self.folder / name))

    def fill(self) -> None:
        """Create data for every page."""
        hf = self.hf
        self.pipeline = self.submit("movie", scenes=24)
        build = {"package": "python", "fingerprint": "sha256:0123456789abcdef"}
        self.built = self.submit("environments.install", **build)
        request = hf.jobs["environments.install"].request(**build)  # type: ignore[attr-defined]
        for number in range(4):
            hf.jobs["letters.echo"].using(depends_on=[request]).submit(value=f"reader-{number}")
        self.busy = [self.work("busy", key="document-1") for _ in range(3)]
        self.failed = self.submit("letters.fail", text="the figures for November are late")
        hf.jobs["letters.echo"].using(queue="archive", tags={"tenant": "acme"}).submit(value="the-archive")
        hf.queues.pause("archive", note="the archive is being moved")
        hf.queues.limit("documents", max_queued=200, concurrency=6)
        register(
            hf,
            "other-host:77:worker:0badcafe00",
            host="other-host",
            pid=77,
            queues=["default"],
            version="0.0.9",
            expires_at=hf.clock.now() + timedelta(hours=1),
        )
        hf.do(self._slots)
        self.built.result(timeout=60)

    def _slots(self, tx: Transaction) -> None:
        """Store decisions about the last slots of a schedule, at least one of each kind."""
        schedule = self.hf.scheduled["letters.daily"]
        kinds: list[Decided] = ["missed", "skipped", "coalesced", "claimed", "missed", "claimed"]
        slot_at = tx.now.replace(hour=3, minute=0, second=0, microsecond=0) - timedelta(days=len(kinds))
        decisions = [
            Decision(
                slot_at=slot_at + timedelta(days=number),
                state=kind,
                reason="the run of the previous day had not ended" if kind == "skipped" else None,
                coalesced_at=slot_at + timedelta(days=number + 1) if kind == "coalesced" else None,
            )
            for number, kind in enumerate(kinds)
        ]
        slots.take(tx, schedule, decisions, claimed_by="sample")


@contextlib.contextmanager
def sample_site(folder: Path) -> Iterator[SampleSite]:
    """A sample site with its worker and its server."""
    site = SampleSite(folder)
    with site.hf, site.hf.worker(queues=QUEUES, concurrency=8), serving(site.hf) as site.server:
        try:
            site.fill()
            yield site
        finally:
            for run in runs_of(site.hf, state="running"):
                site.hf.cancel(run.id)
