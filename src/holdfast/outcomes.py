"""Outcomes: how a run ends, or that it does not end yet.

    finish ──▶ Succeeded | Failed | TimedOut | Cancelled   an outcome, for good
           ──▶ TryLater                                    back to waits, until it is due
           ──▶ WaitFor                                     back to waits, until its children have ended
           ──▶ HandBack                                    back to ready: the worker shuts down, or its loop is blocked

Only this file ends a run. What leaves `leases` is what the DELETE returned; the rest was lost to someone else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from holdfast import codec, events, holds, leases, ready, waits
from holdfast.events import Event
from holdfast.leases import Lease
from holdfast.policies import KeyOrder
from holdfast.store.transaction import Row, Transaction
from holdfast.tickets import Ticket
from holdfast.waits import Wait

State: TypeAlias = Literal["succeeded", "failed", "cancelled", "timed_out"]


@dataclass(frozen=True, slots=True)
class Succeeded:
    result: str = "null"


@dataclass(frozen=True, slots=True)
class Failed:
    failure_type: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TimedOut:
    error: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """It never started, because what it needs ended without a result."""

    reason: str


@dataclass(frozen=True, slots=True)
class TryLater:
    error: str
    after: timedelta
    key_order: KeyOrder = "due"
    counts: bool = True
    """Whether it uses up one of the run's tries."""


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Not an end and no failure: the run goes on when these others have ended, and holds no worker until then."""

    run_ids: tuple[str, ...]
    key_order: KeyOrder = "due"


@dataclass(frozen=True, slots=True)
class HandBack:
    because: str


Final: TypeAlias = Succeeded | Failed | TimedOut | Cancelled | Skipped
Outcome: TypeAlias = Final | TryLater | WaitFor | HandBack


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A run that has left its place, and how it ends."""

    ticket: Ticket
    outcome: Final
    holder: str | None = None
    started_at: datetime | None = None


def finish(tx: Transaction, done: Sequence[tuple[Lease, Outcome]], *, holder: str) -> set[str]:
    """Move each run from our lease to where its outcome says; the runs whose lease was lost are returned."""
    held = leases.give_up(tx, [lease for lease, _ in done], holder=holder)
    ours = [(held[lease.run_id], outcome) for lease, outcome in done if lease.run_id in held]
    endings: list[Ending] = []
    later: list[tuple[Lease, TryLater]] = []
    waiting: list[tuple[Lease, WaitFor]] = []
    back: list[tuple[Lease, HandBack]] = []
    for lease, outcome in ours:
        match _heeding_cancel(lease, outcome):
            case TryLater() as wait:
                later.append((lease, wait))
            case WaitFor() as others:
                waiting.append((lease, others))
            case HandBack() as returned:
                back.append((lease, returned))
            case final:
                endings.append(
                    Ending(ticket=lease.ticket, outcome=final, holder=lease.holder, started_at=lease.started_at)
                )
    end(tx, endings)
    _try_later(tx, later)
    _wait_for(tx, waiting)
    _hand_back(tx, back)
    return {lease.run_id for lease, _ in done} - held.keys()


def end(tx: Transaction, endings: Iterable[Ending]) -> None:
    """Write the outcomes of runs that the caller has just removed from their place, and open their holds."""
    endings = list(endings)
    if not endings:
        return
    tx.put("insert_outcomes", rows=[_row(ending, tx.now) for ending in endings], now=tx.now)
    holds.open_those_of(tx, [ending.ticket for ending in endings])
    tx.ended += [ending.ticket.run_id for ending in endings]
    _take_children_along(tx, [ending for ending in endings if not isinstance(ending.outcome, Succeeded)])


def seal(row: Row) -> str:
    """A digest of an outcome: `verify` sees by it that the row is as it was written."""
    return codec.digest(
        row["run_id"],
        row["state"],
        row["failure_type"],
        row["error"],
        row["result"],
        str(row["attempt"]),
        codec.instant_text(row["finished_at"]),
    )


def _heeding_cancel(lease: Lease, outcome: Outcome) -> Outcome:
    """A run that was asked to stop is never tried again."""
    if lease.cancel_requested_at is not None and isinstance(outcome, TryLater | WaitFor | HandBack):
        return Cancelled(lease.cancel_reason or "cancelled")
    return outcome


def _try_later(tx: Transaction, later: Sequence[tuple[Lease, TryLater]]) -> None:
    events.record(
        tx,
        [
            Event(
                run_id=lease.run_id,
                kind="RUN_RETRIED" if wait.counts else "RUN_PUT_OFF",
                attempt=lease.attempt,
                data={"error": wait.error, "due_at": (tx.now + wait.after).isoformat(), **_when(lease)},
            )
            for lease, wait in later
        ],
    )
    holds.open_those_of(tx, [lease.ticket for lease, wait in later if wait.key_order == "due"])
    waits.put(
        tx,
        [
            Wait(
                ticket=lease.ticket if wait.counts else lease.ticket.changed(tries=lease.ticket.tries - 1),
                due_at=tx.now + wait.after,
                because=gist(wait.error),
            )
            for lease, wait in later
        ],
    )


def _wait_for(tx: Transaction, waiting: Sequence[tuple[Lease, WaitFor]]) -> None:
    """No try is used up. A child that has ended meanwhile is seen by whoever looks at the wait."""
    events.record(
        tx,
        [
            Event(
                run_id=lease.run_id,
                kind="RUN_WAITS",
                attempt=lease.attempt,
                data={"for": len(others.run_ids), **_when(lease)},
            )
            for lease, others in waiting
        ],
    )
    holds.open_those_of(tx, [lease.ticket for lease, others in waiting if others.key_order == "due"])
    if needs := sorted((needed, lease.run_id) for lease, others in waiting for needed in set(others.run_ids)):
        tx.put(
            "insert_needs",
            rows=[{"needed": needed, "run_id": run_id, "must_succeed": 0} for needed, run_id in needs],
        )
    waits.put(
        tx,
        [
            Wait(
                ticket=lease.ticket.changed(tries=lease.ticket.tries - 1),
                missing=len(set(others.run_ids)),
                because=f"waits for {len(set(others.run_ids))} runs that it has submitted",
            )
            for lease, others in waiting
        ],
    )


def gist(error: str) -> str:
    """What a traceback comes to: its last line. The event has all of it."""
    lines = error.strip().splitlines()
    return lines[-1][:1000] if lines else ""


def _hand_back(tx: Transaction, back: Sequence[tuple[Lease, HandBack]]) -> None:
    events.record(
        tx,
        [
            Event(
                run_id=lease.run_id,
                kind="RUN_HANDED_BACK",
                attempt=lease.attempt,
                data={"because": returned.because, **_when(lease)},
            )
            for lease, returned in back
        ],
    )
    ready.put(tx, [lease.ticket.changed(tries=lease.ticket.tries - 1) for lease, _ in back])


def _take_children_along(tx: Transaction, bad: Sequence[Ending]) -> None:
    """What belongs to a run that ended badly is to be stopped; an orchestrator does it, a batch at a time."""
    if not bad:
        return
    rows = sorted(
        ({"parent_id": ending.ticket.run_id, "because": _because(ending)} for ending in bad),
        key=lambda row: row["parent_id"],
    )
    if tx.run("insert_stops", rows=rows, now=tx.now):
        tx.ring("waits")


def _because(ending: Ending) -> str:
    state, _, error, _ = _columns(ending.outcome)
    ended = {"failed": "failed", "cancelled": "was cancelled", "timed_out": "timed out"}.get(state, state)
    return f"{ending.ticket.job} (run {ending.ticket.run_id}) {ended}: {gist(error or '')}"


def _when(lease: Lease) -> dict[str, str]:
    return {"holder": lease.holder, "started_at": lease.started_at.isoformat()}


def _row(ending: Ending, now: datetime) -> Row:
    state, failure_type, error, result = _columns(ending.outcome)
    row: Row = {
        "run_id": ending.ticket.run_id,
        "state": state,
        "failure_type": failure_type,
        "error": error,
        "result": result,
        "attempt": ending.ticket.attempt,
        "tries": ending.ticket.tries,
        "takeovers": ending.ticket.takeovers,
        "holder": ending.holder,
        "started_at": ending.started_at,
        "finished_at": now,
    }
    return row | {"seal": seal(row)}


def _columns(outcome: Final) -> tuple[State, str | None, str | None, str | None]:
    match outcome:
        case Succeeded(result):
            return "succeeded", None, None, result
        case Failed(failure_type, error):
            return "failed", failure_type, error, None
        case TimedOut(error):
            return "timed_out", "TIMED_OUT", error, None
        case Cancelled(reason):
            return "cancelled", "CANCELLED", reason, None
        case Skipped(reason):
            return "cancelled", "SKIPPED", reason, None
