"""`hf.schedules`: look after what runs by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast import schedules, slots
from holdfast.handles import Run
from holdfast.schedules import Schedule
from holdfast.slots import Slot
from holdfast.store.transaction import Transaction

if TYPE_CHECKING:
    from holdfast.engine import Holdfast


@dataclass(frozen=True, kw_only=True)
class ScheduleInfo:
    """A schedule as it stands: its trigger in words, how far its slots are decided, its last slot and its next."""

    name: str
    trigger: str
    queue: str
    considered_at: datetime
    paused_at: datetime | None
    note: str | None
    seen_at: datetime
    last: Slot | None
    next_at: datetime | None


class Schedules:
    """What has a schedule here (`known`), and what the database knows of schedules."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self.known: dict[str, Schedule] = {}

    def list(self) -> Sequence[ScheduleInfo]:
        """Every schedule that a worker has ever written down."""

        def read(tx: Transaction) -> Sequence[ScheduleInfo]:
            return [self._info(tx, standing) for standing in schedules.list_all(tx)]

        return self._hf.read(read)

    def slots(self, name: str, *, last: int = 20, next: int = 5) -> Sequence[Slot]:
        """The last slots and what became of them, then the next ones; in order of time."""

        def read(tx: Transaction) -> Sequence[Slot]:
            standing = self._here(schedules.get(tx, name))
            coming = [] if standing.paused_at else standing.next_slots(next, now=tx.now)
            done = slots.last(tx, name, limit=last) if last > 0 else []
            taken = {slot.scheduled_for for slot in done}
            upcoming = [Slot(schedule=name, scheduled_for=at, outcome="upcoming") for at in coming if at not in taken]
            return sorted(done + upcoming, key=lambda slot: slot.scheduled_for)

        return self._hf.read(read)

    def trigger(self, name: str, *, scheduled_for: datetime) -> Run[Any]:
        """Claim a slot by hand. It passes the same claim as the scheduler's: SlotTaken if the slot has been decided,
        StillRunning if an earlier run stands in the way."""

        def trigger(tx: Transaction) -> str:
            self._write_down(tx, name)
            return slots.trigger(tx, name, scheduled_for=scheduled_for)

        return self._hf.get(self._hf.do(trigger))

    def pause(self, name: str, *, note: str | None = None) -> None:
        """Let no slot start until `resume`; what runs goes on."""

        def pause(tx: Transaction) -> None:
            self._write_down(tx, name)
            schedules.pause(tx, name, note=note)

        self._hf.do(pause)

    def resume(self, name: str) -> None:
        """Go on; the slots of the pause are late ones, and coalesce, misfire_grace and catch_up decide about them."""
        self._hf.do(lambda tx: schedules.resume(tx, name))

    def _write_down(self, tx: Transaction, name: str) -> None:
        """A schedule of our code may be spoken of before a worker has started."""
        if name in self.known:
            schedules.add(tx, self.known[name])

    def _info(self, tx: Transaction, standing: schedules.Standing) -> ScheduleInfo:
        standing = self._here(standing)
        last = slots.last(tx, standing.name, limit=1)
        coming = [] if standing.paused_at else standing.next_slots(1, now=tx.now)
        return ScheduleInfo(
            name=standing.name,
            trigger=str(standing.schedule.trigger),
            queue=standing.schedule.queue,
            considered_at=standing.considered_at,
            paused_at=standing.paused_at,
            note=standing.note,
            seen_at=standing.seen_at,
            last=last[0] if last else None,
            next_at=coming[0] if coming else None,
        )

    def _here(self, standing: schedules.Standing) -> schedules.Standing:
        """With the code's own trigger, where the code is here and says the same."""
        known = self.known.get(standing.name)
        return replace(standing, schedule=known) if known and known.to_json() == standing.spec else standing
