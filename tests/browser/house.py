"""House: an application with something of everything, its worker and its server, for a real browser to walk through."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.contract.alive import register
from tests.listing import runs_of
from tests.web.conftest import Server, serving

from holdfast import Context, Holdfast, Run
from holdfast.schedules import slots
from holdfast.schedules.slots import Decision
from holdfast.store.transaction import Transaction
from holdfast.values.schedules import Decided

QUEUES = ("default", "mail", "press", "builds", "operations")
HOSTILE = (
    "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\"></pre></textarea> "
    "{{ 7*7 }} \x1b[31mred\x1b[0m \x07 \u202egnp.exe\u2066 \u2028 'single' \"double\" `tick` &lt;b&gt; \u200f\u200e end"
)


class House:
    """What the tests of a module share.

    open     let runs of `gated` with this name go on
    server   where it is served
    """

    def __init__(self, folder: Path) -> None:
        self.hf = hf = Holdfast(
            f"sqlite:///{folder / 'house.db'}",
            artifacts=folder / "artifacts",
            tick=0.1,
            lease=6,
            max_args_bytes=7_000_000,
        )
        self._gates: dict[str, threading.Event] = {}
        self._lock = threading.Lock()
        log = logging.getLogger("house")
        house = self

        @hf.job(name="gated", queue="press", key="{key}", timeout=60)
        def gated(ctx: Context, name: str, key: str) -> str:
            ctx.log.info("%s has begun", name)
            while not house._gate(name).wait(0.02):
                ctx.check()
            return f"{name} is through"

        @hf.job(name="mail.send", queue="mail")
        def send(to: str) -> str:
            return f"sent to {to}"

        @hf.job(name="texts.say")
        def say(text: str, fail: bool = False) -> str:
            log.warning("%s", text[:10_000])
            if fail:
                raise RuntimeError(text[:100_000])
            return text

        film = hf.pipeline("film")

        @film.stage()
        def script(ctx: Context, scenes: int) -> list[int]:
            return ctx.segments(list(range(scenes)))

        @film.stage(after=script, each="scene", on_error="continue")
        def audio(scene: int) -> int:
            if scene == 3:
                raise ValueError("no voice for scene 3")
            return scene

        @film.stage(after=script, each="scene")
        def images(scene: int) -> int:
            return scene

        @film.stage(after=[audio, images], on_error="continue")
        def cut(audio: list[int]) -> int:
            return len(audio)

        @film.stage(after=[cut, script])
        def publish(cut: int) -> str:
            house._gate("publish").wait(60)
            return f"{cut} scenes"

        @hf.build(name="environment")
        def environment(ctx: Context, configuration: str, fingerprint: str) -> str:
            return f"{configuration} is ready"

        @hf.schedule("*/15 * * * *", tz="Europe/Berlin", name="feeds.fetch", queue="mail")
        def feeds() -> None: ...

        @hf.schedule("0 3 * * 1-5", name="reports.nightly", queue="elsewhere", overlap="wait")
        def nightly() -> None: ...

        self.server: Server = None  # type: ignore[assignment]

    def open(self, name: str) -> None:
        self._gate(name).set()

    def submit(self, job: str, /, **arguments: Any) -> Run[Any]:
        return self.hf.jobs[job].submit(**arguments)

    def furnish(self) -> None:
        """Put something on every page."""
        hf = self.hf
        self.pipeline = self.submit("film", scenes=24)
        self.env = self.submit("environment", configuration="python", fingerprint="sha256:0123456789abcdef")
        wish = hf.jobs["environment"].of(configuration="python", fingerprint="sha256:0123456789abcdef")  # type: ignore[attr-defined]
        for number in range(4):
            hf.jobs["mail.send"].using(after=[wish]).submit(to=f"reader-{number}")
        self.busy = [self.submit("gated", name="busy", key="document-1") for _ in range(3)]
        self.failed = self.submit("texts.say", text="the figures of November are late", fail=True)
        hf.jobs["mail.send"].using(queue="archive", tags={"tenant": "acme"}).submit(to="the-archive")
        hf.queues.pause("archive", note="the archive moves house")
        hf.queues.limit("press", max_queued=200, concurrency=6)
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
        self.env.result(timeout=60)

    def _slots(self, tx: Transaction) -> None:
        """What became of the last slots of a schedule: some of each kind."""
        schedule = self.hf.scheduled["reports.nightly"]
        kinds: list[Decided] = ["missed", "skipped", "coalesced", "claimed", "missed", "claimed"]
        slot_at = tx.now.replace(hour=3, minute=0, second=0, microsecond=0) - timedelta(days=len(kinds))
        decisions = [
            Decision(
                slot_at=slot_at + timedelta(days=number),
                state=kind,
                because="the run of the day before had not ended" if kind == "skipped" else None,
                into_at=slot_at + timedelta(days=number + 1) if kind == "coalesced" else None,
            )
            for number, kind in enumerate(kinds)
        ]
        slots.take(tx, schedule, decisions, claimed_by="house")

    def _gate(self, name: str) -> threading.Event:
        with self._lock:
            return self._gates.setdefault(name, threading.Event())


@contextlib.contextmanager
def inhabited(folder: Path, *, furnished: bool = True) -> Iterator[House]:
    """A house with its worker and its server."""
    house = House(folder)
    with house.hf, house.hf.worker(queues=QUEUES, concurrency=8), serving(house.hf) as house.server:
        try:
            if furnished:
                house.furnish()
            yield house
        finally:
            for name in ("busy", "publish", *house._gates):
                house.open(name)
            for run in runs_of(house.hf, state="running"):
                house.hf.cancel(run.id)
