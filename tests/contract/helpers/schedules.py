"""A job with a schedule, its slots as lines, and other processes with the same schedule."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast import Holdfast, StillRunning
from holdfast.orchestrator.schedule import Scheduler
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual

QUARTER, HOUR, DAY = timedelta(minutes=15), timedelta(hours=1), timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


def scheduled(hf: Holdfast, manual: Manual, when: Any = "*/15 * * * *", **options: Any) -> Any:
    """A job with a schedule that the orchestrator has just stored, and a live worker for it."""

    @hf.schedule(when, name="ingest", **options)
    def ingest(scheduled_for: datetime) -> str:
        return scheduled_for.isoformat()

    assert manual.schedule() == 0, "a new schedule must have no slots from before it was stored"
    manual.worker(queues=[options.get("queue", "default")]).register()
    return ingest


def slot_lines(hf: Holdfast, **which: Any) -> list[str]:
    """Slots as 'HH:MM outcome'."""
    return [
        f"{slot.scheduled_for:%H:%M} {slot.outcome}" for slot in hf.schedules.slots("ingest", **({"next": 0} | which))
    ]


class OtherProcess(ExitStack):
    """The engine and the scheduler of another process with the same schedule."""

    def __init__(self, url: str, clock: FakeClock, seed: int = 7, when: Any = "*/15 * * * *", **options: Any) -> None:
        super().__init__()
        self.hf = self.enter_context(Holdfast(url, clock=clock, ids=Ids(seed=100 + seed)))
        self.hf.schedule(when, name="ingest", **({"overlap": "wait"} | options))(_ingest)

    def __enter__(self) -> Any:
        return Scheduler(self.hf.store, self.hf.scheduled, holder="manual")


def _ingest(scheduled_for: datetime) -> str:
    return scheduled_for.isoformat()


def trigger_from_eight_threads(hf: Holdfast) -> int:
    """Trigger eight slots from eight threads at once; return how many got a run."""
    barrier = threading.Barrier(8)

    def trigger(number: int) -> bool:
        barrier.wait()
        try:
            hf.schedules.trigger("ingest", scheduled_for=START - number * QUARTER)
        except StillRunning:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(trigger, range(8)))
