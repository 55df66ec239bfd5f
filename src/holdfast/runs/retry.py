"""Retry, wait and release: how a run gives up its lease without ending."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.runs import events, ready
from holdfast.runs.lease import Lease
from holdfast.runs.limits.keys import open_key_locks
from holdfast.runs.outcomes import Release, RetryLater, WaitForChildren
from holdfast.runs.waiting import Wait, add_waiting
from holdfast.store.transaction import Transaction
from holdfast.values.events import Event
from holdfast.values.runs import last_line


def retry_later(tx: Transaction, later: Sequence[tuple[Lease, RetryLater]]) -> None:
    events.record(
        tx,
        [
            lease_event(
                lease,
                "RUN_RETRIED" if wait.counts else "RUN_SNOOZED",
                {"error": wait.error, "due_at": (tx.now + wait.after).isoformat()},
            )
            for lease, wait in later
        ],
    )
    open_key_locks(tx, [lease.entry for lease, wait in later if wait.key_order == "due"])
    add_waiting(
        tx,
        [
            Wait(
                entry=lease.entry if wait.counts else lease.entry.changed(attempt=lease.entry.attempt - 1),
                due_at=tx.now + wait.after,
                reason=last_line(wait.error),
            )
            for lease, wait in later
        ],
    )


def wait_for_children(tx: Transaction, waiting: Sequence[tuple[Lease, WaitForChildren]]) -> None:
    """Move these runs to `waits` without using up an attempt. An orchestrator notices if a child has already ended."""
    events.record(
        tx, [lease_event(lease, "RUN_WAITING_FOR_CHILDREN", {"for": len(others.run_ids)}) for lease, others in waiting]
    )
    open_key_locks(tx, [lease.entry for lease, others in waiting if others.key_order == "due"])
    if pairs := sorted((depends_on, lease.run_id) for lease, others in waiting for depends_on in set(others.run_ids)):
        tx.put(
            "insert_dependencies",
            rows=[{"depends_on": depends_on, "run_id": run_id, "must_succeed": 0} for depends_on, run_id in pairs],
        )
    add_waiting(
        tx,
        [
            Wait(
                entry=lease.entry.changed(attempt=lease.entry.attempt - 1),
                dependencies_left=len(set(others.run_ids)),
                reason=_reason(len(set(others.run_ids))),
            )
            for lease, others in waiting
        ],
    )


def _reason(children: int) -> str:
    return f"waits for {children} {'child' if children == 1 else 'children'}"


def release(tx: Transaction, back: Sequence[tuple[Lease, Release]]) -> None:
    events.record(tx, [lease_event(lease, "RUN_RELEASED", {"reason": one.reason}) for lease, one in back])
    ready.put(tx, [lease.entry.changed(attempt=lease.entry.attempt - 1) for lease, _ in back])


def lease_event(lease: Lease, kind: str, data: dict[str, Any]) -> Event:
    """Return the event for an attempt that gave up its lease, with its worker and start time."""
    where = {"holder": lease.holder, "started_at": lease.started_at.isoformat()}
    return Event(run_id=lease.run_id, kind=kind, claim=lease.claim, data=data | where)
