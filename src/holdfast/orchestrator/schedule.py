"""Schedule: due slots → runs. Any number of schedulers may run; none is leader, and none loses a slot.

One transaction a schedule: its row is locked, what came due since it was last considered is decided, the slots are
inserted, the runs of those inserted are submitted. If it does not commit, nothing was considered.
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

MOST = 1000  # slots that are written down one by one after a long absence
AT_ONCE = 100  # schedules of one round, so that what else waits is not kept waiting
SEEN_EVERY = timedelta(hours=1)
SET_BACK = timedelta(minutes=1)  # a clock that jumps back by less just waits for itself
Guard = Callable[[Transaction], None]


class Scheduler:
    """The schedules of one process, and when each has to be looked at: kept in memory, so that time alone costs no
    query."""

    def __init__(
        self, store: Store, known: Mapping[str, Schedule], *, holder: str, guard: Guard = lambda tx: None
    ) -> None:
        self._store, self._known, self._holder, self._guard = store, known, holder, guard
        self._next: dict[str, datetime] = {}
        self._met: set[str] = set()
        self._warned: dict[str, str] = {}
        """The stored definition of each schedule that differs from ours, as of the last warning."""
        self._looked_at: datetime | None = None
        self._changed = self._closed = False

    def close(self) -> None:
        """Claim no more slots, from now on: they are for those who go on."""
        self._closed = True

    def forget(self) -> None:
        """Something was changed by hand: look at every schedule the next time."""
        self._changed = True

    def keep(self, now: datetime) -> int:
        """Consider what is due; how many slots were decided."""
        set_back = self._looked_at is not None and now < self._looked_at - SET_BACK
        if self._changed or set_back:
            self._changed = False  # before looking: what is changed from now on is for the next time
            self._next = {}
        self._looked_at = now
        due = [one for name, one in list(self._known.items()) if self._next.get(name, now) <= now]
        due.sort(key=lambda one: self._next.get(one.name, EPOCH))
        return sum(self._keep(schedule, now) for schedule in due[:AT_ONCE] if not self._closed)

    def next_at(self) -> datetime | None:
        """When the next schedule has to be looked at, if any is known."""
        if self._closed:
            return None
        return min((self._next.get(name, EPOCH) for name in list(self._known)), default=None)

    def _keep(self, schedule: Schedule, now: datetime) -> int:
        def consider_it(tx: Transaction) -> tuple[Considered, datetime]:
            self._guard(tx)
            take_over = schedule.name not in self._met
            return consider(tx, schedule, holder=self._holder, take_over=take_over), tx.now

        try:
            considered, until = self._store.do(consider_it)
            following = schedule.trigger.after(until)
        except (StoreBusy, StoreUnavailable, WorkerExists):
            raise
        except Exception:
            # A trigger of the user's own is code like any other; one that fails must not stop all the others.
            log.exception("schedule %s can't be considered; trying again in %s", schedule.name, SET_BACK)
            self._next[schedule.name] = now + SET_BACK
            return 0
        self._met.add(schedule.name)
        self._tell(schedule, considered)
        self._next[schedule.name] = min(until + SEEN_EVERY, following or until + SEEN_EVERY)
        return considered.slots

    def _tell(self, schedule: Schedule, considered: Considered) -> None:
        """Log that our definition of a schedule replaced the stored one, or lost to it; the latter once a change."""
        name = schedule.name
        if considered.replaced is not None:
            log.info("schedule %s: this worker's definition replaces the stored one: %s", name, considered.replaced)
        if considered.other is None:
            self._warned.pop(name, None)
        elif self._warned.get(name) != considered.other:
            self._warned[name] = considered.other
            log.warning(
                "schedule %s: a worker that started later has another definition, and this worker claims none of its "
                "slots: %s",
                name,
                definitions.differences(schedule.to_json(), considered.other),
            )


@dataclass(frozen=True, kw_only=True)
class Considered:
    """What came of looking at a schedule.

    slots     how many slots were decided
    replaced  how our definition differs from the stored one that it replaced, if it did
    other     the stored definition, if it differs from ours and we leave the slots to other workers
    """

    slots: int = 0
    replaced: str | None = None
    other: str | None = None


def consider(tx: Transaction, schedule: Schedule, *, holder: str, take_over: bool) -> Considered:
    """Decide every slot that came due since someone last did; `holder` is the worker that claims them.

    `take_over`: the code has just started and says what the schedule is now. From then on code that says otherwise
    is older, and leaves the slots alone.
    """
    standing = definitions.lock(tx, schedule.name)
    if standing is None:
        definitions.add(tx, schedule)
        return Considered()
    spec = schedule.to_json()
    standing, damaged = _readable(standing, schedule, tx.now), standing.unreadable
    if not take_over and damaged is None and spec != standing.spec and not _is_abandoned(standing, tx.now):
        return Considered(other=standing.spec)
    replaced = None
    if spec != standing.spec:
        replaced = definitions.differences(spec, standing.spec) if damaged is None else json_text.marker(damaged)
        tx.notify("schedules")  # workers with the other definition look now, and say so
    since = standing.considered_at
    if since > tx.now + SET_BACK:
        # The clock was set back: what was decided ahead of it has its rows, what was not is still to come.
        since = tx.now - SET_BACK
    # What came due before this code started was due by what the row says; its own counts from now on.
    other_times = take_over and triggers.dump(schedule.trigger) != triggers.dump(standing.schedule.trigger)
    trigger = standing.schedule.trigger if other_times else schedule.trigger
    due, more = ([], False) if standing.paused_at else triggers.between(trigger, since, tx.now, most=MOST)
    if not due:
        until = tx.now if other_times and not standing.paused_at else since
        if spec != standing.spec or until != standing.considered_at or tx.now - standing.seen_at >= SEEN_EVERY:
            definitions.decided(tx, schedule, until=until)
        return Considered(replaced=replaced)
    if more:
        _sum_up(tx, schedule, since, due[0])
    decisions = decide(schedule, due, now=tx.now, active=slots.active(tx, schedule))
    written = slots.take(tx, schedule, decisions, claimed_by=holder)
    definitions.decided(tx, schedule, until=tx.now)
    for slot in written:
        log.info("schedule %s: slot %s %s", schedule.name, slots.text(slot.scheduled_for), slot.outcome)
    return Considered(slots=len(written), replaced=replaced)


def _readable(standing: ScheduleStatus, schedule: Schedule, now: datetime) -> ScheduleStatus:
    """The stored schedule; in place of what can't be decoded, our own definition and no slot before now."""
    if standing.unreadable is None:
        return standing
    considered_at = now if isinstance(standing.considered_at, json_text.UnreadableInstant) else standing.considered_at
    return replace(standing, schedule=schedule, considered_at=considered_at)


def decide(
    schedule: Schedule, due: Sequence[datetime], *, now: datetime, active: Sequence[slots.Active]
) -> list[Decision]:
    """What becomes of slots that are due together, oldest first."""
    wanted = [slot_at for slot_at in due if not _is_missed(schedule, slot_at, now, latest=due[-1])]
    chosen = set(wanted[-1:] if schedule.coalesce else wanted)
    coalesced = set(wanted) - chosen
    other = slots.in_the_way(schedule, active)
    decisions: list[Decision] = []
    for slot_at in due:
        if slot_at in chosen and other is None:
            decisions.append(Decision(slot_at=slot_at, state="claimed"))
        elif slot_at in chosen:
            decisions.append(Decision(slot_at=slot_at, state="skipped", because=str(other)))
        elif slot_at in coalesced:
            because = f"slot {slots.text(wanted[-1])} was due at the same time"
            decisions.append(Decision(slot_at=slot_at, state="coalesced", because=because, into_at=wanted[-1]))
        else:
            because = f"it was {_age(now - slot_at)} late; misfire_grace is {_age(schedule.misfire_grace)}"
            decisions.append(Decision(slot_at=slot_at, state="missed", because=because))
    return decisions


def _is_missed(schedule: Schedule, slot_at: datetime, now: datetime, *, latest: datetime) -> bool:
    if not schedule.is_late(slot_at, now):
        return False
    if isinstance(schedule.catch_up, timedelta):
        return now - slot_at > schedule.catch_up
    return schedule.catch_up == "none" or slot_at != latest


def _is_abandoned(standing: ScheduleStatus, now: datetime) -> bool:
    """Whether no code is left that keeps the schedule as its row says."""
    following = standing.schedule.trigger.after(standing.considered_at)
    overdue = standing.paused_at is None and following is not None and following < now - SET_BACK
    return overdue or now - standing.seen_at > 2 * SEEN_EVERY


def _sum_up(tx: Transaction, schedule: Schedule, since: datetime, first: datetime) -> None:
    """After a long absence the oldest slots are one event, and no rows."""
    data = {"schedule": schedule.name, "after": since.isoformat(), "before": first.isoformat()}
    events.record(tx, [Event(run_id=None, kind="SLOTS_PASSED", data=data)])
    log.warning("schedule %s: the slots between %s and %s were missed", schedule.name, since, first)


def _age(age: timedelta | None) -> str:
    return "none" if age is None else str(timedelta(seconds=round(age.total_seconds())))
