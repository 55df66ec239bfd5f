"""Promote: waits → ready, when a run's time has come, its needs have ended, or it is its turn for the key.

Each verb is a transaction of its own and takes at most `limit` runs. A move happens once because of the DELETE that
returned the row; two orchestrators at the same run do no harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from holdfast import outcomes, ready, waits
from holdfast.outcomes import Ending, Failed
from holdfast.store.transaction import Row, Transaction
from holdfast.tickets import Ticket


def due(tx: Transaction, *, limit: int) -> int:
    """Runs whose time has come: those without a key are ready, the others wait for their turn only."""
    rows = tx.all("find_due", now=tx.now, limit=limit)
    if not rows:
        return 0
    own = _holding(tx, [row["run_id"] for row in rows if row["key"] is not None])
    free = [row["run_id"] for row in rows if row["key"] is None or row["run_id"] in own]
    ready.put(tx, waits.remove(tx, free) if free else ())
    keyed = sorted(row["run_id"] for row in rows if row["key"] is not None and row["run_id"] not in own)
    if keyed:
        tx.put("come_due", ids=keyed)
        tx.ring("waits")
    return len(rows)


def needs(tx: Transaction, ended: Sequence[str], *, limit: int) -> int:
    """Runs that need these ended ones."""
    return _met(tx, tx.all("find_needs_on", ids=sorted(ended), limit=limit)) if ended else 0


def needs_after(tx: Transaction, cursor: tuple[str, str], *, limit: int) -> tuple[str, str] | None:
    """A page of all needs, whoever rang or did not; the cursor of the next page, or None at the end."""
    rows = tx.all("find_needs_after", needed=cursor[0], run_id=cursor[1], limit=limit)
    _met(tx, [row for row in rows if row["state"] is not None])
    return (rows[-1]["needed"], rows[-1]["run_id"]) if len(rows) == limit else None


def looks(tx: Transaction, *, limit: int) -> int:
    """Waits that no orchestrator has seen: meet their needs, open holds for their keys, let go who is free."""
    rows = tx.all("find_looks", limit=limit)
    if not rows:
        return 0
    _met(tx, tx.all("find_met_needs_of", ids=[row["run_id"] for row in rows if row["missing"] > 0]))
    free = [row["run_id"] for row in rows if row["missing"] == 0 and row["due_at"] is None and row["key"] is None]
    if free:
        ready.put(tx, waits.let_go(tx, free))
    keys = sorted(
        {row["key"] for row in rows if row["missing"] == 0 and row["due_at"] is None and row["key"] is not None}
    )
    if keys:
        tx.put("open_new_holds", ids=keys)
    return len(rows)


def seen(tx: Transaction, *, limit: int) -> int:
    """Clear the looks of waits that still have to wait, as this later snapshot shows; how many."""
    ids = [row["run_id"] for row in tx.all("find_looks", limit=limit)]
    if not ids:
        return 0
    # Hold the rows still first: an UPDATE that had to wait for one would judge its new state by an old snapshot of
    # the holds and needs, and a run whose key has just become free would never be looked at again.
    tx.all("lock_waits", ids=ids)
    return tx.run("clear_looks", ids=ids)


def turns(tx: Transaction, *, limit: int) -> int:
    """Give each open hold to the oldest due waiter of its key, or remove it when no one waits."""
    keys = [row["key"] for row in tx.all("find_open_holds", limit=limit)]
    if not keys:
        return 0
    found = tx.all("find_turns", ids=keys, now=tx.now)
    next_up = {row["key"]: row["run_id"] for row in found if row["run_id"] is not None}
    moved = {ticket.key: ticket for ticket in waits.remove(tx, list(next_up.values()))} if next_up else {}
    if moved:
        rows = [{"key": key, "run_id": ticket.run_id} for key, ticket in moved.items()]
        tx.put("give_holds", rows=rows)
        ready.put(tx, moved.values())
    if idle := [key for key in keys if key not in next_up]:
        tx.put("delete_open_holds", ids=idle)
    return len(keys)


def _met(tx: Transaction, met: Sequence[Row]) -> int:
    """Remove met needs and let go who needs nothing more; a need that had to succeed and did not fails its waiter."""
    if not met:
        return 0
    # Waiters first, in order, and each counts only what its own DELETE returned: two orchestrators at two needs of
    # one run can't both believe that the other's is still missing.
    tx.all("lock_waits", ids=sorted({row["run_id"] for row in met}))
    _fail_those_in_need(tx, [row for row in met if row["must_succeed"] and row["state"] != "succeeded"])
    rows = sorted(
        ({"needed": row["needed"], "run_id": row["run_id"]} for row in met),
        key=lambda row: (row["needed"], row["run_id"]),
    )
    removed = Counter(row["run_id"] for row in tx.all("delete_needs", rows=rows))
    if removed:
        counts = [{"run_id": run_id, "count": count} for run_id, count in sorted(removed.items())]
        left = tx.all("subtract_needs", rows=counts)
        free = [row["run_id"] for row in left if row["missing"] == 0 and row["due_at"] is None and row["key"] is None]
        ready.put(tx, waits.remove(tx, free) if free else ())
        if len(free) < len(left):
            tx.ring("waits")
    return len(met)


def _fail_those_in_need(tx: Transaction, broken: Iterable[Row]) -> None:
    reasons = {row["run_id"]: f"it needed run {row['needed']}, which {_ended(row['state'])}" for row in broken}
    if not reasons:
        return
    failed = waits.remove(tx, list(reasons))
    tx.put("delete_needs_of", ids=sorted(ticket.run_id for ticket in failed))
    outcomes.end(tx, [_ending(ticket, reasons[ticket.run_id]) for ticket in failed])


def _ending(ticket: Ticket, reason: str) -> Ending:
    return Ending(ticket=ticket, outcome=Failed("NEED_FAILED", reason))


def _ended(state: str) -> str:
    return {"failed": "failed", "cancelled": "was cancelled", "timed_out": "timed out"}[state]


def _holding(tx: Transaction, run_ids: list[str]) -> set[str]:
    """Those of these waiting runs that kept their key (`key_order='strict'`)."""
    return {row["run_id"] for row in tx.all("find_holders", ids=sorted(run_ids))} if run_ids else set()
