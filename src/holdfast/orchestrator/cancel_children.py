"""Cancel children: cancels the unfinished children of a run that did not succeed.

    waiting, ready ──▶ cancelled
    running        ──▶ cancel requested

A cancelled child that has children gets a cancellation row of its own, so its children are cancelled next.
"""

from __future__ import annotations

from holdfast.runs import events, ready
from holdfast.runs.finish import end_unstarted
from holdfast.runs.outcomes import Cancelled
from holdfast.runs.waiting import take_waiting
from holdfast.store.transaction import Transaction
from holdfast.values.events import Event

PARENTS = 20


def children(tx: Transaction, *, limit: int) -> int:
    """Cancel up to `limit` children. Return how many, plus how many parents have no unfinished child left."""
    moved = 0
    for row in tx.all("find_child_cancellations", limit=PARENTS):
        if moved >= limit:
            break
        ids = [child["id"] for child in tx.all("find_open_children", parent_id=row["parent_id"], limit=limit - moved)]
        if ids:
            moved += _cancel(tx, ids, reason=row["reason"])
        else:
            tx.put("delete_child_cancellation", parent_id=row["parent_id"])
            moved += 1
    return moved


def _cancel(tx: Transaction, ids: list[str], *, reason: str) -> int:
    """Cancel these runs and return how many. The next call finds any run that changes state in the meantime."""
    running = [row["run_id"] for row in tx.all("request_cancels", ids=ids, reason=reason, now=tx.now)]
    if running:
        data = {"reason": reason}
        events.record(tx, [Event(run_id=run_id, kind="CANCEL_REQUESTED", data=data) for run_id in sorted(running)])
        tx.notify("cancels")
    queued = sorted(set(ids) - set(running))
    tx.all("lock_waits", ids=queued)
    removed = [*take_waiting(tx, queued), *ready.remove(tx, queued)]
    end_unstarted(tx, dict.fromkeys(removed, Cancelled(reason)))
    return len(running) + len(removed)
