"""Finish: replace a lease with an outcome, or move the run back to `waits` or `ready`.

Only the holder of the current lease can finish a run; a worker whose lease was lost writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from holdfast.runs.lease import Lease, give_up_leases
from holdfast.runs.limits.keys import open_key_locks
from holdfast.runs.outcomes import (
    Cancelled,
    Ending,
    Failed,
    Final,
    Outcome,
    Release,
    RetryLater,
    Skipped,
    Succeeded,
    TimedOut,
    WaitForChildren,
)
from holdfast.runs.queue_entry import QueueEntry
from holdfast.runs.retry import release, retry_later, wait_for_children
from holdfast.runs.waiting import delete_dependencies
from holdfast.store.transaction import Row, Transaction
from holdfast.values.runs import State, last_line


def finish_runs(tx: Transaction, done: Sequence[tuple[Lease, Outcome]], *, holder: str) -> set[str]:
    """Move each run from our lease to the table for its outcome; return the runs whose lease was lost."""
    held = give_up_leases(tx, [lease for lease, _ in done], holder=holder)
    ours = [(held[lease.run_id], outcome) for lease, outcome in done if lease.run_id in held]
    endings: list[Ending] = []
    later: list[tuple[Lease, RetryLater]] = []
    waiting: list[tuple[Lease, WaitForChildren]] = []
    back: list[tuple[Lease, Release]] = []
    for lease, outcome in ours:
        match _unless_cancelled(lease, outcome):
            case RetryLater() as wait:
                later.append((lease, wait))
            case WaitForChildren() as others:
                waiting.append((lease, others))
            case Release() as returned:
                back.append((lease, returned))
            case final:
                endings.append(
                    Ending(entry=lease.entry, outcome=final, holder=lease.holder, started_at=lease.started_at)
                )
    end_runs(tx, endings)
    retry_later(tx, later)
    wait_for_children(tx, waiting)
    release(tx, back)
    return {lease.run_id for lease, _ in done} - held.keys()


def end_unstarted(tx: Transaction, outcomes: Mapping[QueueEntry, Final]) -> None:
    """End runs that the caller has just removed from `waits` or `ready`, and delete their dependencies."""
    if outcomes:
        delete_dependencies(tx, [entry.run_id for entry in outcomes])
        end_runs(tx, [Ending(entry=entry, outcome=outcome) for entry, outcome in outcomes.items()])


def end_runs(tx: Transaction, endings: Iterable[Ending]) -> None:
    """Write the outcomes of runs that the caller has just removed from their table, and open their key locks."""
    endings = list(endings)
    if not endings:
        return
    tx.put("insert_outcomes", rows=[_row(ending, tx.now) for ending in endings], now=tx.now)
    open_key_locks(tx, [ending.entry for ending in endings])
    tx.ended += [ending.entry.run_id for ending in endings]
    _request_child_cancellations(tx, [ending for ending in endings if not isinstance(ending.outcome, Succeeded)])


def _unless_cancelled(lease: Lease, outcome: Outcome) -> Outcome:
    """Return the outcome, or Cancelled if the run was cancelled and would otherwise start again."""
    if lease.cancel_requested_at is not None and isinstance(outcome, RetryLater | WaitForChildren | Release):
        return Cancelled(lease.cancel_reason or "cancelled")
    return outcome


def _request_child_cancellations(tx: Transaction, unsuccessful: Sequence[Ending]) -> None:
    """Ask the orchestrator to cancel the children of these runs; it does so in batches."""
    if not unsuccessful:
        return
    rows = sorted(
        ({"parent_id": ending.entry.run_id, "reason": _reason(ending)} for ending in unsuccessful),
        key=lambda row: row["parent_id"],
    )
    if tx.run("insert_child_cancellations", rows=rows, now=tx.now):
        tx.notify("waits")


def _reason(ending: Ending) -> str:
    state, _, error, _ = _columns(ending.outcome)
    ended = {"failed": "failed", "cancelled": "was cancelled", "timed_out": "timed out"}.get(state, state)
    return f"{ending.entry.job} (run {ending.entry.run_id}) {ended}: {last_line(error or '')}"


def _row(ending: Ending, now: datetime) -> Row:
    state, failure_type, error, result = _columns(ending.outcome)
    return {
        "run_id": ending.entry.run_id,
        "state": state,
        "failure_type": failure_type,
        "error": error,
        "result": result,
        "claim": ending.entry.claim,
        "attempt": ending.entry.attempt,
        "takeovers": ending.entry.takeovers,
        "holder": ending.holder,
        "started_at": ending.started_at,
        "finished_at": now,
    }


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
