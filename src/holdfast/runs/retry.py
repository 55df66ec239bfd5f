"""Retry, wait and release: the ways in which a run leaves its lease without ending."""

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
                "RUN_RETRIED" if wait.counts else "RUN_PUT_OFF",
                {"error": wait.error, "due_at": (tx.now + wait.after).isoformat()},
            )
            for lease, wait in later
        ],
    )
    open_key_locks(tx, [lease.ticket for lease, wait in later if wait.key_order == "due"])
    add_waiting(
        tx,
        [
            Wait(
                ticket=lease.ticket if wait.counts else lease.ticket.changed(tries=lease.ticket.tries - 1),
                due_at=tx.now + wait.after,
                because=last_line(wait.error),
            )
            for lease, wait in later
        ],
    )


def wait_for_children(tx: Transaction, waiting: Sequence[tuple[Lease, WaitForChildren]]) -> None:
    """No try is used up. A child that has ended meanwhile is seen by whoever looks at the wait."""
    events.record(tx, [lease_event(lease, "RUN_WAITS", {"for": len(others.run_ids)}) for lease, others in waiting])
    open_key_locks(tx, [lease.ticket for lease, others in waiting if others.key_order == "due"])
    if needs := sorted((needed, lease.run_id) for lease, others in waiting for needed in set(others.run_ids)):
        tx.put(
            "insert_needs",
            rows=[{"needed": needed, "run_id": run_id, "must_succeed": 0} for needed, run_id in needs],
        )
    add_waiting(
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


def release(tx: Transaction, back: Sequence[tuple[Lease, Release]]) -> None:
    events.record(tx, [lease_event(lease, "RUN_HANDED_BACK", {"because": one.because}) for lease, one in back])
    ready.put(tx, [lease.ticket.changed(tries=lease.ticket.tries - 1) for lease, _ in back])


def lease_event(lease: Lease, kind: str, data: dict[str, Any]) -> Event:
    """That an attempt left its lease: when it began, where, and why."""
    where = {"holder": lease.holder, "started_at": lease.started_at.isoformat()}
    return Event(run_id=lease.run_id, kind=kind, attempt=lease.attempt, data=data | where)
