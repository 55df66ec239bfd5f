"""Cancel children: what becomes of the children of a run that ended badly.

    waits, ready ──▶ cancelled
    leases       ──▶ asked to stop

Children of children follow: each that is cancelled has a stop of its own, if it has any.
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
    """Stop up to `limit` children of runs that ended badly; how many were, and of how many runs none is left."""
    moved = 0
    for row in tx.all("find_stops", limit=PARENTS):
        if moved >= limit:
            break
        ids = [child["id"] for child in tx.all("find_open_children", parent_id=row["parent_id"], limit=limit - moved)]
        if ids:
            moved += _stop(tx, ids, because=row["because"])
        else:
            tx.put("delete_stop", parent_id=row["parent_id"])
            moved += 1
    return moved


def _stop(tx: Transaction, ids: list[str], *, because: str) -> int:
    """How many could be; one that moved while we looked is found again."""
    asked = [row["run_id"] for row in tx.all("request_cancels", ids=ids, reason=because, now=tx.now)]
    if asked:
        data = {"reason": because}
        events.record(tx, [Event(run_id=run_id, kind="CANCEL_REQUESTED", data=data) for run_id in sorted(asked)])
        tx.notify("cancels")
    left = sorted(set(ids) - set(asked))
    tx.all("lock_waits", ids=left)
    gone = [*take_waiting(tx, left), *ready.remove(tx, left)]
    end_unstarted(tx, dict.fromkeys(gone, Cancelled(because)))
    return len(asked) + len(gone)
