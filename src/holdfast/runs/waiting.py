"""Waiting: runs that can't start yet, each with one row that says why.

A run waits for its time (`due_at`), for other runs (`missing` counts them), or for its turn with a key. `look` means
that no orchestrator has examined the row since its commit; it is cleared only after seeing, in a later snapshot, that
the run really has to wait. So no wake-up between a submit and a finish is ever lost. `spare` is how many of its needs
may still end badly (None: any), `errand` what an orchestrator has to do for the run before it can go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.runs.queue_entry import QueueEntry
from holdfast.store.transaction import Row, Transaction

SKIP = 2
"""If this need ends badly, the run that waits for it is skipped, not failed: a stage that never ran can't fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    ticket: QueueEntry
    missing: int = 0
    due_at: datetime | None = None
    because: str | None = None
    look: bool = True
    spare: int | None = None
    errand: str | None = None


def add_waiting(tx: Transaction, waits: Iterable[Wait]) -> None:
    """Let these runs wait, and have an orchestrator look at them."""
    waits = list(waits)
    if waits:
        tx.put("insert_waits", rows=[_row(wait, tx.now) for wait in waits])
        tx.notify("waits")


def take_waiting(tx: Transaction, run_ids: Sequence[str]) -> list[QueueEntry]:
    """Those of these runs that were waiting and are now ours to move."""
    return [QueueEntry.of(row) for row in tx.all("delete_waits", ids=sorted(run_ids))]


def let_go_waiting(tx: Transaction, run_ids: Sequence[str]) -> list[QueueEntry]:
    """Those of these runs that wait for nothing any more, and are now ours to move."""
    return [QueueEntry.of(row) for row in tx.all("delete_free_waits", ids=sorted(run_ids))]


def delete_dependencies(tx: Transaction, run_ids: Sequence[str]) -> None:
    """These runs have stopped waiting: what they needed, and the builds that they asked for, are no one's business."""
    tx.put("delete_needs_of", ids=sorted(run_ids))
    tx.put("delete_asks_of", ids=sorted(run_ids))


def _row(wait: Wait, now: datetime) -> Row:
    return wait.ticket.row() | {
        "missing": wait.missing,
        "due_at": wait.due_at,
        "because": wait.because,
        "look": int(wait.look),
        "since_at": now,
        "spare": wait.spare,
        "errand": wait.errand,
    }
