"""Schedule: claims due slots and submits their runs. Any number of schedulers may run, without a leader.

Each schedule is evaluated in one transaction: lock its row, decide about the slots that came due since the last
evaluation, insert the slots, and submit their runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from holdfast.runs import events
from holdfast.schedules import definitions, slots, triggers
from holdfast.schedules.definitions import Schedule, ScheduleStatus
from holdfast.schedules.slots import Decision
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support import json_text
from holdfast.support.clock import EPOCH
from holdfast.support.errors import StoreBusy, StoreUnavailable, WorkerExists
from holdfast.values.events import Event

log = logging.getLogger("holdfast.orchestrator")

MAX_SLOTS = 1000  # slots that get a row each after a long outage; older ones are recorded as one event
BATCH = 100  # schedules per round, so that other tasks are not delayed
SEEN_EVERY = timedelta(hours=1)
SET_BACK = timedelta(minutes=1)  # smaller backward jumps of the clock need no handling
Guard = Callable[[Transaction], None]


class Scheduler:
    """The schedules of one process, with the next evaluation time of each in memory, so that waiting needs no query."""

    def __init__(
        self, store: Store, known: Mapping[str, Schedule], *, holder: str, guard: Guard = lambda tx: None
    ) -> None:
        self._store, self._known, self._holder, self._guard = store, known, holder, guard
        self._next: dict[str, datetime] = {}
        self._evaluated: set[str] = set()
        self._warned: dict[str, str] = {}
        """The stored definition of each schedule that differs from ours, as of the last warning."""
        self._evaluated_at: datetime | None = None
        self._changed = self._closed = False

    def close(self) -> None:
        """Claim no more slots from now on; other workers claim them."""
        self._closed = True

    def forget(self) -> None:
        """Evaluate every schedule at the next call of `keep`, because an operator has changed one."""
        self._changed = True

    def keep(self, now: datetime) -> int:
        """Evaluate the schedules that are due. Return how many slots were decided."""
        set_back = self._evaluated_at is not None and now < self._evaluated_at - SET_BACK
        if self._changed or set_back:
            self._changed = False  # reset first, so that a change from now on counts for the next call
            self._next = {}
        self._evaluated_at = now
        due = [one for name, one in list(self._known.items()) if self._next.get(name, now) <= now]
        due.sort(key=lambda one: self._next.get(one.name, EPOCH))
        return sum(self._evaluate(schedule, now) for schedule in due[:BATCH] if not self._closed)

    def next_at(self) -> datetime | None:
        """When to evaluate the next schedule; None if there is none."""
        if self._closed:
            return None
        return min((self._next.get(name, EPOCH) for name in list(self._known)), default=None)

    def _evaluate(self, schedule: Schedule, now: datetime) -> int:
        def run(tx: Transaction) -> tuple[Evaluation, datetime]:
            self._guard(tx)
            take_over = schedule.name not in self._evaluated
            return evaluate(tx, schedule, holder=self._holder, take_over=take_over), tx.now

        try:
            evaluation, until = self._store.do(run)
            following = schedule.trigger.after(until)
        except (StoreBusy, StoreUnavailable, WorkerExists):
            raise
        except Exception:
            # A trigger may be user code. If it fails, the other schedules must go on.
            log.exception("could not evaluate schedule %s; retrying in %s", schedule.name, SET_BACK)
            self._next[schedule.name] = now + SET_BACK
            return 0
        self._evaluated.add(schedule.name)
        self._log(schedule, evaluation)
        self._next[schedule.name] = min(until + SEEN_EVERY, following or until + SEEN_EVERY)
        return evaluation.slots

    def _log(self, schedule: Schedule, evaluation: Evaluation) -> None:
        """Log if our definition replaced the stored one; warn, once per change, if another definition is in force."""
        name = schedule.name
        if evaluation.replaced is not None:
            log.info("schedule %s: this worker's definition replaces the stored one: %s", name, evaluation.replaced)
        if evaluation.other is None:
            self._warned.pop(name, None)
        elif self._warned.get(name) != evaluation.other:
            self._warned[name] = evaluation.other
            log.warning(
                "schedule %s: a worker that started later has another definition, so this worker claims none of its "
                "slots: %s",
                name,
                definitions.differences(schedule.to_json(), evaluation.other),
            )


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The result of evaluating a schedule.

    slots     how many slots were decided
    replaced  how our definition differs from the stored one, if ours replaced it
    other     the stored definition, if it differs from ours and other workers claim the slots
    """

    slots: int = 0
    replaced: str | None = None
    other: str | None = None


def evaluate(tx: Transaction, schedule: Schedule, *, holder: str, take_over: bool) -> Evaluation:
    """Decide about every slot that came due since the last evaluation; `holder` is the worker that claims them.

    `take_over`: this process has just started, so its definition replaces the stored one. Later on, a process whose
    definition differs from the stored one has older code and does not claim slots.
    """
    status = definitions.lock(tx, schedule.name)
    if status is None:
        definitions.add(tx, schedule)
        return Evaluation()
    spec = schedule.to_json()
    status, damaged = _readable(status, schedule, tx.now), status.unreadable
    if not take_over and damaged is None and spec != status.spec and not _is_abandoned(status, tx.now):
        return Evaluation(other=status.spec)
    replaced = None
    if spec != status.spec:
        replaced = definitions.differences(spec, status.spec) if damaged is None else json_text.marker(damaged)
        tx.notify("schedules")  # workers with the other definition evaluate it now and log a warning
    since = status.evaluated_at
    if since > tx.now + SET_BACK:
        # The clock was set back. Slots decided before that have rows, so deciding about their times again does no harm.
        since = tx.now - SET_BACK
    # Slots that came due before this process started follow the stored trigger; later slots follow our own.
    other_times = take_over and triggers.dump(schedule.trigger) != triggers.dump(status.schedule.trigger)
    trigger = status.schedule.trigger if other_times else schedule.trigger
    due, more = ([], False) if status.paused_at else triggers.between(trigger, since, tx.now, most=MAX_SLOTS)
    if not due:
        until = tx.now if other_times and not status.paused_at else since
        if spec != status.spec or until != status.evaluated_at or tx.now - status.last_seen_at >= SEEN_EVERY:
            definitions.decided(tx, schedule, until=until)
        return Evaluation(replaced=replaced)
    if more:
        _record_missed(tx, schedule, since, due[0])
    decisions = decide(schedule, due, now=tx.now, active=slots.active(tx, schedule))
    written = slots.take(tx, schedule, decisions, claimed_by=holder)
    definitions.decided(tx, schedule, until=tx.now)
    for slot in written:
        log.info("schedule %s: slot %s %s", schedule.name, slots.text(slot.scheduled_for), slot.outcome)
    return Evaluation(slots=len(written), replaced=replaced)


def _readable(status: ScheduleStatus, schedule: Schedule, now: datetime) -> ScheduleStatus:
    """Return the stored schedule. If it can't be decoded, use our own definition and no slot before now."""
    if status.unreadable is None:
        return status
    evaluated_at = now if isinstance(status.evaluated_at, json_text.UnreadableInstant) else status.evaluated_at
    return replace(status, schedule=schedule, evaluated_at=evaluated_at)


def decide(
    schedule: Schedule, due: Sequence[datetime], *, now: datetime, active: Sequence[slots.Active]
) -> list[Decision]:
    """Decide about slots that are due together, oldest first."""
    wanted = [slot_at for slot_at in due if not _is_missed(schedule, slot_at, now, latest=due[-1])]
    chosen = set(wanted[-1:] if schedule.coalesce else wanted)
    coalesced = set(wanted) - chosen
    other = slots.in_the_way(schedule, active)
    decisions: list[Decision] = []
    for slot_at in due:
        if slot_at in chosen and other is None:
            decisions.append(Decision(slot_at=slot_at, state="claimed"))
        elif slot_at in chosen:
            decisions.append(Decision(slot_at=slot_at, state="skipped", reason=str(other)))
        elif slot_at in coalesced:
            reason = f"slot {slots.text(wanted[-1])} had become due as well"
            decisions.append(Decision(slot_at=slot_at, state="coalesced", reason=reason, coalesced_at=wanted[-1]))
        else:
            reason = f"it was {_age(now - slot_at)} late; misfire_grace is {_age(schedule.misfire_grace)}"
            decisions.append(Decision(slot_at=slot_at, state="missed", reason=reason))
    return decisions


def _is_missed(schedule: Schedule, slot_at: datetime, now: datetime, *, latest: datetime) -> bool:
    if not schedule.is_late(slot_at, now):
        return False
    if isinstance(schedule.catch_up, timedelta):
        return now - slot_at > schedule.catch_up
    return schedule.catch_up == "none" or slot_at != latest


def _is_abandoned(status: ScheduleStatus, now: datetime) -> bool:
    """Whether no process that has the stored definition is left."""
    following = status.schedule.trigger.after(status.evaluated_at)
    overdue = status.paused_at is None and following is not None and following < now - SET_BACK
    return overdue or now - status.last_seen_at > 2 * SEEN_EVERY


def _record_missed(tx: Transaction, schedule: Schedule, since: datetime, first: datetime) -> None:
    """After a long outage, record the oldest slots as one event instead of a row each."""
    data = {"schedule": schedule.name, "after": since.isoformat(), "before": first.isoformat()}
    events.record(tx, [Event(run_id=None, kind="SLOTS_MISSED", data=data)])
    log.warning("schedule %s: the slots between %s and %s were missed", schedule.name, since, first)


def _age(age: timedelta | None) -> str:
    return "none" if age is None else str(timedelta(seconds=round(age.total_seconds())))
