"""`hf.schedules`: look after what runs by the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.jobs.job import Job
from holdfast.runs import audit, workers
from holdfast.runs.handle import Run
from holdfast.runtime import Runtime
from holdfast.schedules import definitions, slots, triggers
from holdfast.schedules.definitions import Schedule, ScheduleStatus
from holdfast.store.transaction import Transaction
from holdfast.support import json_text
from holdfast.support.errors import ScheduleNotFound
from holdfast.support.validation import did_you_mean, job_name
from holdfast.values.schedules import ScheduleInfo, Slot
from holdfast.values.workers import WorkerInfo

AHEAD = 100  # of the slots that were triggered before their time, no more are looked at


class Schedules:
    """What the database knows of schedules, and what the code here does."""

    def __init__(self, runtime: Runtime, declared: Mapping[str, Schedule], handle: Callable[[str], Run[Any]]) -> None:
        self._runtime, self._declared, self._handle = runtime, declared, handle

    def list(self) -> Sequence[ScheduleInfo]:
        """Every schedule that a worker has ever written down, and those of the code that is here."""

        def read(tx: Transaction) -> Sequence[ScheduleInfo]:
            alive = workers.live(tx)
            found: dict[str, ScheduleStatus | Schedule] = dict(self._declared)
            found |= {standing.name: self._here(standing) for standing in definitions.list_all(tx)}
            return [self._info(tx, found[name], alive) for name in sorted(found)]

        return self._runtime.read(read)

    def get(self, schedule: Job[..., Any] | str) -> ScheduleInfo:
        """One schedule as it stands, or ScheduleNotFound."""
        name = job_name(schedule)
        return self._runtime.read(lambda tx: self._get(tx, name))

    def slots(self, schedule: Job[..., Any] | str, *, last: int = 20, next: int = 5) -> Sequence[Slot]:
        """The last slots and what became of them, then the next ones; in order of time."""
        name = job_name(schedule)

        def read(tx: Transaction) -> Sequence[Slot]:
            done = slots.last(tx, name, limit=last) if last > 0 else []
            coming = self._coming(tx, self._standing(tx, name), next)
            upcoming = [Slot(schedule=name, scheduled_for=at, outcome="upcoming") for at in coming]
            return sorted(done + upcoming, key=lambda slot: slot.scheduled_for)

        return self._runtime.read(read)

    def trigger(self, schedule: Job[..., Any] | str, *, scheduled_for: datetime, by: str | None = None) -> Run[Any]:
        """Claim a slot by hand. It passes the same claim as the scheduler's: SlotTaken if the slot has been decided,
        StillRunning if an earlier run stands in the way, NoWorker if no live worker would run it."""
        name = job_name(schedule)

        def trigger(tx: Transaction) -> str:
            self._write_down(tx, name)
            run_id = slots.trigger(tx, name, scheduled_for=scheduled_for)
            audit.record(tx, by, "trigger", run_id=run_id, schedule=name, slot=scheduled_for.isoformat())
            return run_id

        return self._handle(self._runtime.do(trigger))

    def pause(self, schedule: Job[..., Any] | str, *, note: str | None = None, by: str | None = None) -> None:
        """Let no slot start until `resume`; what runs goes on."""
        name = job_name(schedule)

        def pause(tx: Transaction) -> None:
            self._write_down(tx, name)
            definitions.pause(tx, name, note=note)
            audit.record(tx, by, "pause", schedule=name, note=note)

        self._runtime.do(pause)

    def resume(self, schedule: Job[..., Any] | str, *, by: str | None = None) -> None:
        """Go on; the slots of the pause are late ones, and coalesce, misfire_grace and catch_up decide about them."""
        name = job_name(schedule)

        def resume(tx: Transaction) -> None:
            definitions.resume(tx, name)
            audit.record(tx, by, "resume", schedule=name)

        self._runtime.do(resume)

    def _write_down(self, tx: Transaction, name: str) -> None:
        """A schedule of our code may be spoken of before a worker has started."""
        if name in self._declared:
            definitions.add(tx, self._declared[name])

    def _get(self, tx: Transaction, name: str) -> ScheduleInfo:
        return self._info(tx, self._standing(tx, name), workers.live(tx))

    def _standing(self, tx: Transaction, name: str) -> ScheduleStatus | Schedule:
        """As its row says; as the code here says, where no worker has started with it yet."""
        try:
            return self._here(definitions.get(tx, name))
        except ScheduleNotFound:
            if name not in self._declared:
                if likely := did_you_mean(name, self._declared):
                    raise ScheduleNotFound(f"there is no schedule {name}{likely}") from None
                raise
            return self._declared[name]

    def _coming(self, tx: Transaction, of: ScheduleStatus | Schedule, count: int) -> Sequence[datetime]:
        """The next slots that no one has taken yet: one that was triggered by hand does not come again."""
        if isinstance(of, Schedule):
            return definitions.next_slots(of.trigger, count, after=tx.now)
        if of.paused_at is not None:
            return []
        taken = {slot.scheduled_for for slot in slots.last(tx, of.name, limit=AHEAD) if slot.scheduled_for > tx.now}
        after = max(of.considered_at, tx.now)
        found = definitions.next_slots(of.schedule.trigger, count + len(taken), after=after)
        return [at for at in found if at not in taken][:count]

    def _info(self, tx: Transaction, of: ScheduleStatus | Schedule, alive: Sequence[WorkerInfo]) -> ScheduleInfo:
        schedule = of if isinstance(of, Schedule) else of.schedule
        info = ScheduleInfo(
            name=schedule.name,
            trigger=str(schedule.trigger),
            words=triggers.in_words(schedule.trigger),
            tz=schedule.trigger.tz if isinstance(schedule.trigger, triggers.Cron) else None,
            queue=schedule.queue,
            considered_at=None,
            paused_at=None,
            note=None,
            seen_at=None,
            last=None,
            next_at=next(iter(self._coming(tx, of, 1)), None),
        )
        if isinstance(of, Schedule):
            return info
        stored = json_text.digest(of.spec)
        return replace(
            info,
            considered_at=of.considered_at,
            paused_at=of.paused_at,
            note=of.note,
            seen_at=of.seen_at,
            last=next(iter(slots.last(tx, of.name, limit=1)), None),
            others=tuple(worker.id for worker in alive if worker.schedules.get(of.name, stored) != stored),
            unreadable=of.unreadable,
        )

    def _here(self, standing: ScheduleStatus) -> ScheduleStatus:
        """With the code's own trigger, where the code is here and says the same."""
        known = self._declared.get(standing.name)
        return replace(standing, schedule=known) if known and known.to_json() == standing.spec else standing
