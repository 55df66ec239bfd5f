"""Slots: the due times of a schedule, and what was decided for each.

    due ──▶ claimed      its run was submitted in the same transaction. The outcome of the run is that of the slot.
                         `claimed_by` is the worker that claimed it; for a slot triggered by hand, one that can run it
        ──▶ coalesced    a later slot that had become due as well runs instead
        ──▶ skipped      an earlier run had not ended, or the queue was full
        ──▶ missed       no worker claimed it in time

(job, scheduled_for) is the primary key: the transaction that inserts the row has claimed the slot. This holds for the
scheduler and for slots triggered by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from holdfast.runs import ready, workers
from holdfast.runs.cancel import cancel_run
from holdfast.runs.finish import end_unstarted
from holdfast.runs.outcomes import Failed
from holdfast.runs.submission import Submission
from holdfast.runs.submit import submit_runs
from holdfast.runs.waiting import take_waiting
from holdfast.schedules import definitions
from holdfast.schedules.definitions import Schedule
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.clock import EPOCH
from holdfast.support.errors import (
    HoldfastError,
    InvalidPolicy,
    NoWorker,
    QueueFull,
    SlotTaken,
    StillRunning,
    Unreadable,
)
from holdfast.values.runs import Snapshot
from holdfast.values.schedules import OUTCOMES, Decided, Slot
from holdfast.values.workers import why_unserved

MOST_WAITING = 100  # how many waiting runs of a schedule are read at most
AHEAD = timedelta(days=366)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What is decided for a slot."""

    slot_at: datetime
    state: Decided
    reason: str | None = None
    coalesced_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Active:
    """A run of the schedule's job that has not ended.

    `lost` means that it is past its deadline and its lease has expired. An orchestrator will end it, so it doesn't keep
    a slot from being claimed.
    """

    run_id: str
    slot_at: datetime | None
    holder: str | None
    lost: bool

    def __str__(self) -> str:
        of = f" of slot {text(self.slot_at)}" if self.slot_at is not None else ""
        return f"run {self.run_id}{of} has not ended" + (f" (on {self.holder})" if self.holder else "")


def take(
    tx: Transaction, schedule: Schedule, decisions: Sequence[Decision], *, claimed_by: str, manual: bool = False
) -> list[Slot]:
    """Store the decisions, submit the runs of the claimed slots, and return the slots that were not taken before."""
    wanted = {
        one.slot_at: (one, tx.new_id() if one.state == "claimed" else None)
        for one in sorted(decisions, key=lambda one: one.slot_at)
    }
    rows = [
        {
            "job": schedule.name,
            "slot_at": one.slot_at,
            "state": one.state,
            "run_id": run_id,
            "reason": one.reason,
            "coalesced_at": one.coalesced_at,
            "manual": int(manual),
            "claimed_at": tx.now,
            "claimed_by": claimed_by,
        }
        for one, run_id in wanted.values()
    ]
    if not rows:
        return []
    ours = {row["slot_at"] for row in tx.all("insert_slots", rows=rows)}
    claimed = [(at, run_id) for at, (_, run_id) in wanted.items() if at in ours and run_id is not None]
    under_way = active(tx, schedule) if claimed and schedule.overlap == "cancel" else []
    refused = _submit(tx, schedule, claimed, at_once=manual)
    if manual and refused:
        raise next(iter(refused.values()))
    # Cancel after the submission: a slot that is refused cancels nothing, and queues must be locked before runs.
    for slot_at in [at for at, _ in claimed if at not in refused][-1:]:
        for one in under_way:
            cancel_run(tx, one.run_id, reason=f"slot {text(slot_at)} of schedule {schedule.name} became due")
    for at, (decision, _) in wanted.items():
        if at in ours and decision.state == "missed":
            tx.count("slot_missed", schedule.name)
    return [
        Slot(schedule=schedule.name, scheduled_for=at, outcome="skipped", reason=str(refused[at]))
        if at in refused
        else _written(schedule, decision, run_id, manual=manual)
        for at, (decision, run_id) in wanted.items()
        if at in ours
    ]


def active(tx: Transaction, schedule: Schedule) -> list[Active]:
    """Return the unfinished runs of the schedule's job, oldest first, whether the scheduler submitted them or not."""
    return [
        Active(
            run_id=row["run_id"],
            slot_at=row["slot_at"],
            holder=row["holder"],
            lost=row["deadline_at"] is not None and row["deadline_at"] <= tx.now and row["expires_at"] < tx.now,
        )
        for row in tx.all("find_active", key=schedule.key, limit=schedule.max_instances + MOST_WAITING)
    ]


def in_the_way(schedule: Schedule, found: Iterable[Active]) -> Active | None:
    """Return the unfinished run that makes the scheduler skip a slot due now, if there is one."""
    under_way = [one for one in found if not one.lost]
    return under_way[0] if schedule.overlap == "skip" and len(under_way) >= schedule.max_instances else None


def trigger(tx: Transaction, name: str, *, scheduled_for: datetime) -> str:
    """Claim this slot by hand, as the scheduler would, and return the id of its run.

    An error rolls the transaction back, so a slot that can't be claimed stays as it was.
    """
    slot_at = _checked(scheduled_for, now=tx.now)
    status = definitions.lock(tx, name) or definitions.get(tx, name)
    if status.unreadable is not None:
        raise Unreadable(f"schedule {name} can't be triggered: {status.unreadable}")
    schedule = status.schedule
    alive = workers.live(tx)
    worker = workers.serving(alive, schedule.queue, schedule.name)
    if worker is None:
        if (taken := of_slot(tx, name, slot_at)) is not None:
            raise _is_taken(name, slot_at, taken)
        why = why_unserved(alive, schedule.queue, job=name) or "no live worker knows its job"
        raise NoWorker(f"slot {text(slot_at)} of schedule {name} can't be claimed: {why}")
    other = in_the_way(schedule, active(tx, schedule))
    decision = Decision(slot_at=slot_at, state="claimed")
    claimed = take(tx, schedule, [decision], claimed_by=worker.id, manual=True)
    if not claimed:
        raise _is_taken(name, slot_at, of_slot(tx, name, slot_at))
    if other is not None:
        raise StillRunning(f"schedule {name}: {other}; with overlap='skip', no other run starts until it ends")
    [run_id] = [slot.run_id for slot in claimed if slot.run_id is not None]
    return run_id


def abandon(tx: Transaction, left_behind: Callable[[str], bool], *, reason: str) -> list[str]:
    """Fail the claimed slots that have not started and whose worker is gone, and return the ids of their runs."""
    queued = tx.all("find_queued_slots")
    ids = [row["run_id"] for row in queued if left_behind(row["claimed_by"] or "")]
    tx.all("lock_waits", ids=ids)
    gone = [*take_waiting(tx, ids), *ready.remove(tx, ids)]
    end_unstarted(tx, dict.fromkeys(gone, Failed("PROCESS_TERMINATED", reason)))
    return [entry.run_id for entry in gone]


def last(tx: Transaction, name: str, *, limit: int, before: datetime | None = None) -> list[Slot]:
    """Return the latest decided slots, oldest first."""
    rows = tx.all("find_slots", job=name, before=before or datetime(9999, 1, 1, tzinfo=UTC), limit=limit)
    return [_slot(row) for row in reversed(rows)]


def of_slot(tx: Transaction, name: str, slot_at: datetime) -> Slot | None:
    rows = tx.all("find_slots", job=name, before=slot_at + timedelta(microseconds=1), limit=1)
    return _slot(rows[0]) if rows and rows[0]["slot_at"] == slot_at else None


def about(tx: Transaction, run: Snapshot) -> list[str]:
    """Return sentences for `why`: the slot of a run, and the earlier run that it waits for."""
    row = tx.one("find_slot_of", run_id=run.id)
    if row is None:
        return []
    by = ", triggered by hand" if row["manual"] else ""
    reasons = [f"it is slot {text(row['slot_at'])} of schedule {row['job']}{by}"]
    if run.place == "waits" and run.due_at is None:
        earlier = [one for one in tx.all("find_active", key=run.key, limit=MOST_WAITING) if one["run_id"] < run.id]
        if earlier:
            slot_at = earlier[0]["slot_at"]
            blocking = f"slot {text(slot_at)}" if slot_at is not None else "an earlier run"
            reasons.append(
                f"{blocking} (run {earlier[0]['run_id']}) has not ended; "
                f"the schedule limits how many runs of {run.job} run at once"
            )
    return reasons


def text(at: datetime) -> str:
    """Return the time of a slot as text, such as 2026-01-01T00:15:00Z."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"


def _is_taken(name: str, slot_at: datetime, taken: Slot | None) -> SlotTaken:
    slot = f"slot {text(slot_at)} of schedule {name}"
    if taken is None or taken.run_id is None:
        return SlotTaken(f"{slot} has already been decided: {taken.outcome if taken else 'claimed'}", run_id=None)
    return SlotTaken(f"{slot} is taken by run {taken.run_id} ({taken.outcome})", run_id=taken.run_id)


def _checked(given: datetime, *, now: datetime) -> datetime:
    if not isinstance(given, datetime) or given.tzinfo is None:
        raise InvalidPolicy(f"scheduled_for must be a datetime with a time zone, not {given!r}")
    if not EPOCH <= given <= now + AHEAD:
        raise InvalidPolicy(f"scheduled_for must be between 1970 and a year from now, not {given}")
    return given.astimezone(UTC)


def _submit(
    tx: Transaction, schedule: Schedule, claimed: Sequence[tuple[datetime, str]], *, at_once: bool
) -> dict[datetime, HoldfastError]:
    """Submit the runs of these slots. Slots whose run is refused, because the queue is full, become skipped."""
    submissions = [
        Submission(
            run_id=run_id,
            job=schedule.name,
            queue=schedule.queue,
            priority=schedule.priority,
            key=schedule.key,
            args=schedule.arguments(slot_at),
            policy=schedule.policy,
            due_at=None if at_once else schedule.starts_at(slot_at),
            kind="slot",
        )
        for slot_at, run_id in claimed
    ]
    answers = submit_runs(tx, submissions) if submissions else []
    refused = {
        at: answer for (at, _), answer in zip(claimed, answers, strict=True) if isinstance(answer, HoldfastError)
    }
    for error in refused.values():
        if isinstance(error, QueueFull):
            tx.count("queue_rejected", error.queue)
    if refused:
        rows = [{"job": schedule.name, "slot_at": at, "reason": str(error)} for at, error in sorted(refused.items())]
        tx.put("set_slots_skipped", rows=rows)
    return refused


def _written(schedule: Schedule, one: Decision, run_id: str | None, *, manual: bool) -> Slot:
    return Slot(
        schedule=schedule.name,
        scheduled_for=one.slot_at,
        outcome="queued" if one.state == "claimed" else one.state,
        run_id=run_id,
        reason=one.reason,
        coalesced_into=one.coalesced_at,
        manual=manual,
    )


def _slot(row: Row) -> Slot:
    outcome = row["state"] if row["state"] != "claimed" else OUTCOMES.get(row["run_state"], "removed")
    unreadable = json_text.Reading(row).unreadable
    return Slot(
        schedule=row["job"],
        scheduled_for=row["slot_at"],
        outcome=outcome,
        run_id=row["run_id"],
        reason=row["reason"] if unreadable is None else json_text.marker(unreadable),
        coalesced_into=row["coalesced_at"],
        manual=bool(row["manual"]),
        claimed_at=row["claimed_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        holder=row["holder"],
        error=row["error"],
    )
