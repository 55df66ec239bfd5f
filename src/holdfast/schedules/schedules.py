"""`hf.schedules`: list, pause, resume and trigger schedules."""

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

AHEAD = 100  # at most this many slots that were triggered before their time are read


class Schedules:
    """The schedules of one Holdfast: those stored in the database, and those declared in this process."""

    def __init__(self, runtime: Runtime, declared: Mapping[str, Schedule], handle: Callable[[str], Run[Any]]) -> None:
        self._runtime, self._declared, self._handle = runtime, declared, handle

    def list(self) -> Sequence[ScheduleInfo]:
        """List every stored schedule, and those declared in this process."""

        def read(tx: Transaction) -> Sequence[ScheduleInfo]:
            alive = workers.live(tx)
            schedules: dict[str, ScheduleStatus | Schedule] = dict(self._declared)
            schedules |= {status.name: self._with_declared(status) for status in definitions.list_all(tx)}
            return [self._info(tx, schedules[name], alive) for name in sorted(schedules)]

        return self._runtime.read(read)

    def get(self, schedule: Job[..., Any] | str) -> ScheduleInfo:
        """Return a schedule, or raise ScheduleNotFound."""
        name = job_name(schedule)
        return self._runtime.read(lambda tx: self._get(tx, name))

    def slots(self, schedule: Job[..., Any] | str, *, last: int = 20, next: int = 5) -> Sequence[Slot]:
        """Return the last slots with their outcomes and the next slots, in order of time."""
        name = job_name(schedule)

        def read(tx: Transaction) -> Sequence[Slot]:
            done = slots.last(tx, name, limit=last) if last > 0 else []
            times = self._next_slots(tx, self._status(tx, name), next)
            upcoming = [Slot(schedule=name, scheduled_for=at, outcome="upcoming") for at in times]
            return sorted(done + upcoming, key=lambda slot: slot.scheduled_for)

        return self._runtime.read(read)

    def trigger(self, schedule: Job[..., Any] | str, *, scheduled_for: datetime, by: str | None = None) -> Run[Any]:
        """Claim a slot now, as the scheduler would, and return its run.

        Raises SlotTaken if the slot has been decided, StillRunning if an unfinished run prevents it, and NoWorker if no
        live worker would run it.
        """
        name = job_name(schedule)

        def trigger(tx: Transaction) -> str:
            self._store_declared(tx, name)
            run_id = slots.trigger(tx, name, scheduled_for=scheduled_for)
            audit.record(tx, by, "trigger", run_id=run_id, schedule=name, slot=scheduled_for.isoformat())
            return run_id

        return self._handle(self._runtime.do(trigger))

    def pause(self, schedule: Job[..., Any] | str, *, note: str | None = None, by: str | None = None) -> None:
        """Let workers claim no slots until `resume`. Runs that have started continue."""
        name = job_name(schedule)

        def pause(tx: Transaction) -> None:
            self._store_declared(tx, name)
            definitions.pause(tx, name, note=note)
            audit.record(tx, by, "pause", schedule=name, note=note)

        self._runtime.do(pause)

    def resume(self, schedule: Job[..., Any] | str, *, by: str | None = None) -> None:
        """End a pause. The slots due during the pause are late: coalesce, misfire_grace and catch_up apply to them."""
        name = job_name(schedule)

        def resume(tx: Transaction) -> None:
            definitions.resume(tx, name)
            audit.record(tx, by, "resume", schedule=name)

        self._runtime.do(resume)

    def _store_declared(self, tx: Transaction, name: str) -> None:
        """Store a schedule declared in this process, in case no worker has started with it yet."""
        if name in self._declared:
            definitions.add(tx, self._declared[name])

    def _get(self, tx: Transaction, name: str) -> ScheduleInfo:
        return self._info(tx, self._status(tx, name), workers.live(tx))

    def _status(self, tx: Transaction, name: str) -> ScheduleStatus | Schedule:
        """Return the stored schedule, or the declared one if no worker has started with it yet."""
        try:
            return self._with_declared(definitions.get(tx, name))
        except ScheduleNotFound:
            if name not in self._declared:
                if likely := did_you_mean(name, self._declared):
                    raise ScheduleNotFound(f"there is no schedule {name}{likely}") from None
                raise
            return self._declared[name]

    def _next_slots(self, tx: Transaction, of: ScheduleStatus | Schedule, count: int) -> Sequence[datetime]:
        """Return the next slots, without those that were already triggered by hand."""
        if isinstance(of, Schedule):
            return definitions.next_slots(of.trigger, count, after=tx.now)
        if of.paused_at is not None:
            return []
        taken = {slot.scheduled_for for slot in slots.last(tx, of.name, limit=AHEAD) if slot.scheduled_for > tx.now}
        after = max(of.evaluated_at, tx.now)
        times = definitions.next_slots(of.schedule.trigger, count + len(taken), after=after)
        return [at for at in times if at not in taken][:count]

    def _info(self, tx: Transaction, of: ScheduleStatus | Schedule, alive: Sequence[WorkerInfo]) -> ScheduleInfo:
        schedule = of if isinstance(of, Schedule) else of.schedule
        info = ScheduleInfo(
            name=schedule.name,
            trigger=str(schedule.trigger),
            description=triggers.in_words(schedule.trigger),
            tz=schedule.trigger.tz if isinstance(schedule.trigger, triggers.Cron) else None,
            queue=schedule.queue,
            evaluated_at=None,
            paused_at=None,
            note=None,
            last_seen_at=None,
            last=None,
            next_at=next(iter(self._next_slots(tx, of, 1)), None),
        )
        if isinstance(of, Schedule):
            return info
        stored = json_text.digest(of.spec)
        return replace(
            info,
            evaluated_at=of.evaluated_at,
            paused_at=of.paused_at,
            note=of.note,
            last_seen_at=of.last_seen_at,
            last=next(iter(slots.last(tx, of.name, limit=1)), None),
            others=tuple(worker.id for worker in alive if worker.schedules.get(of.name, stored) != stored),
            unreadable=of.unreadable,
        )

    def _with_declared(self, status: ScheduleStatus) -> ScheduleStatus:
        """Use the schedule declared in this process, with its trigger, if the stored definition is the same."""
        declared = self._declared.get(status.name)
        return replace(status, schedule=declared) if declared and declared.to_json() == status.spec else status
