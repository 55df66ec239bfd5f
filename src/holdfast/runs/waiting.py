"""Waiting: runs that can't start yet, each with one row that says why.

due_at             the time that the run waits for
dependencies_left  how many dependencies have not ended
unchecked          whether no orchestrator has checked the row since its commit
failures_allowed   how many more dependencies may end without success; None means any number
pending_action     the action that an orchestrator has to perform before the run can continue

A run can also wait for its key. An orchestrator clears `unchecked` only after it has seen, in a later snapshot, that
the run really has to wait. So no wake-up is lost when a submission and a finish overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.runs.queue_entry import QueueEntry
from holdfast.store.transaction import Row, Transaction

SKIP = 2
"""A value of `must_succeed`: if the dependency does not succeed, the waiting run is skipped instead of failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    entry: QueueEntry
    dependencies_left: int = 0
    due_at: datetime | None = None
    reason: str | None = None
    unchecked: bool = True
    failures_allowed: int | None = None
    pending_action: str | None = None


def add_waiting(tx: Transaction, waits: Iterable[Wait]) -> None:
    """Insert these runs into `waits`, and wake an orchestrator to check them."""
    waits = list(waits)
    if waits:
        tx.put("insert_waits", rows=[_row(wait, tx.now) for wait in waits])
        tx.notify("waits")


def take_waiting(tx: Transaction, run_ids: Sequence[str]) -> list[QueueEntry]:
    """Remove these runs from `waits` and return those that were there. The caller must move them."""
    return [QueueEntry.of(row) for row in tx.all("delete_waits", ids=sorted(run_ids))]


def let_go_waiting(tx: Transaction, run_ids: Sequence[str]) -> list[QueueEntry]:
    """Remove from `waits` the runs that have nothing left to wait for, and return them. The caller must move them."""
    return [QueueEntry.of(row) for row in tx.all("delete_free_waits", ids=sorted(run_ids))]


def delete_dependencies(tx: Transaction, run_ids: Sequence[str]) -> None:
    """Delete the dependencies and build requests of runs that no longer wait."""
    tx.put("delete_dependencies_of", ids=sorted(run_ids))
    tx.put("delete_build_requests_of", ids=sorted(run_ids))


def _row(wait: Wait, now: datetime) -> Row:
    return wait.entry.row() | {
        "dependencies_left": wait.dependencies_left,
        "due_at": wait.due_at,
        "reason": wait.reason,
        "unchecked": int(wait.unchecked),
        "entered_at": now,
        "failures_allowed": wait.failures_allowed,
        "pending_action": wait.pending_action,
    }
