"""Promote: waits → ready, when a run's time has come, its needs have ended, or it is its turn for the key.

Each verb is a transaction of its own and takes at most `limit` runs. A move happens once because of the DELETE that
returned the row; two orchestrators at the same run do no harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from holdfast.runs import ready
from holdfast.runs.finish import end_unstarted
from holdfast.runs.outcomes import Failed, Skipped
from holdfast.runs.queue_entry import QueueEntry
from holdfast.runs.waiting import SKIP, let_go_waiting, take_waiting
from holdfast.store.transaction import Row, Transaction
from holdfast.values.runs import last_line


def due(tx: Transaction, *, limit: int) -> int:
    """Runs whose time has come: those without a key are ready, the others wait for their turn only."""
    rows = tx.all("find_due", now=tx.now, limit=limit)
    if not rows:
        return 0
    own = _holding(tx, [row["run_id"] for row in rows if row["run_key"] is not None])
    free = [row["run_id"] for row in rows if row["run_key"] is None or row["run_id"] in own]
    _let_go(tx, free, own)
    keyed = sorted(row["run_id"] for row in rows if row["run_key"] is not None and row["run_id"] not in own)
    if keyed:
        tx.put("come_due", ids=keyed)
        tx.notify("waits")
    return len(rows)


def needs(tx: Transaction, ended: Sequence[str], *, limit: int) -> int:
    """Runs that need these ended ones."""
    return _met(tx, tx.all("find_needs_on", ids=sorted(ended), limit=limit)) if ended else 0


def needs_after(tx: Transaction, cursor: tuple[str, str], *, limit: int) -> tuple[str, str] | None:
    """A page of all needs, notified or not; the cursor of the next page, or None at the end."""
    rows = tx.all("find_needs_after", needed=cursor[0], run_id=cursor[1], limit=limit)
    _met(tx, [row for row in rows if row["state"] is not None])
    return (rows[-1]["needed"], rows[-1]["run_id"]) if len(rows) == limit else None


def looks(tx: Transaction, *, limit: int) -> int:
    """Waits that no orchestrator has seen: meet their needs, open holds for their keys, let go who is free."""
    rows = tx.all("find_looks", limit=limit)
    if not rows:
        return 0
    _met(tx, tx.all("find_met_needs_of", ids=[row["run_id"] for row in rows if row["missing"] > 0]))
    free = [row for row in rows if row["missing"] == 0 and row["due_at"] is None and row["errand"] is None]
    keyless = [row["run_id"] for row in free if row["run_key"] is None]
    if keyless:
        ready.put(tx, let_go_waiting(tx, keyless))
    keyed = [row for row in free if row["run_key"] is not None]
    own = _holding(tx, [row["run_id"] for row in keyed])
    _let_go(tx, list(own), own)
    wanted = Counter(row["run_key"] for row in keyed if row["run_id"] not in own)
    if wanted:
        limits = dict.fromkeys(wanted, 1)
        for row in keyed:
            limits[row["run_key"]] = max(limits.get(row["run_key"], 1), row["key_limit"])
        tx.put(
            "open_new_holds",
            rows=[{"run_key": key, "key_limit": limits[key], "wanted": wanted[key]} for key in sorted(wanted)],
        )
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
    open_holds = [(row["run_key"], row["number"]) for row in tx.all("find_open_holds", limit=limit)]
    if not open_holds:
        return 0
    next_up = _next_up(tx, open_holds)
    _give(tx, next_up)
    if idle := [{"run_key": key, "number": number} for key, number in open_holds if (key, number) not in next_up]:
        tx.put("delete_open_holds", rows=idle)
    return len(open_holds)


def hand_on(tx: Transaction) -> None:
    """Give the holds that this transaction has opened to who waits for them: one commit for the end and the turn.

    A hold for which we see no one stays open: who waits for it may have committed after we looked, and have been seen
    waiting, with the key still held, by another orchestrator. Only a look after this commit can tell.
    """
    if tx.opened:
        given = _give(tx, _next_up(tx, tx.opened))
        if given == len(tx.opened):
            tx.notified.discard("holds")


def _give(tx: Transaction, next_up: Mapping[tuple[str, int], str]) -> int:
    if not next_up:
        return 0
    moved = {ticket.run_id: ticket for ticket in take_waiting(tx, sorted(next_up.values()))}
    given = [(key, number, moved[run_id]) for (key, number), run_id in next_up.items() if run_id in moved]
    tx.put("give_holds", rows=[{"run_key": key, "number": number, "run_id": one.run_id} for key, number, one in given])
    ready.put(tx, [ticket.changed(number=number) for _, number, ticket in given])
    return len(given)


def _next_up(tx: Transaction, open_holds: Sequence[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """For each open hold the oldest waiter that may have it and has no other yet; the highest number chooses first, as
    it is the one that fewest may have."""
    opens = Counter(key for key, _ in open_holds)
    rows = [{"run_key": key, "number": number, "opens": opens[key]} for key, number in open_holds]
    waiting: dict[tuple[str, int], list[str]] = {}
    for row in tx.all("find_turns", rows=rows, now=tx.now):
        waiting.setdefault((row["run_key"], row["number"]), []).append(row["run_id"])
    next_up: dict[tuple[str, int], str] = {}
    taken: set[str] = set()
    for hold in sorted(waiting, reverse=True):
        run_id = next((run_id for run_id in waiting[hold] if run_id not in taken), None)
        if run_id is not None:
            taken.add(run_id)
            next_up[hold] = run_id
    return next_up


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
    gone = tx.all("delete_needs", rows=rows)
    failed = {(row["needed"], row["run_id"]) for row in met if _ended_badly(row)}
    bad: dict[str, list[str]] = {}
    for row in gone:
        if (row["needed"], row["run_id"]) in failed:
            bad.setdefault(row["run_id"], []).append(row["needed"])
    subtract(tx, Counter(row["run_id"] for row in gone), bad=bad)
    return len(met)


def _ended_badly(row: Row) -> bool:
    """One that was skipped is not counted again: the one for which it was skipped has been."""
    return bool(row["state"] != "succeeded" and row["failure_type"] != "SKIPPED")


def subtract(tx: Transaction, removed: Mapping[str, int], *, bad: Mapping[str, Sequence[str]]) -> None:
    """So many needs of these runs, which the caller has locked, are gone: let go who needs nothing more.

    `bad` are those of them that ended badly, by the run that needed them.
    """
    if not removed:
        return
    counts = [{"run_id": one, "count": count, "bad": len(bad.get(one, ()))} for one, count in sorted(removed.items())]
    left = tx.all("subtract_needs", rows=counts)
    _fail_those_with_too_many(tx, {row["run_id"]: bad[row["run_id"]][0] for row in left if not _is_spared(row)})
    free = [row["run_id"] for row in left if _is_free(row) and row["run_key"] is None]
    ready.put(tx, take_waiting(tx, free) if free else ())
    if any(row["missing"] <= 0 and row["run_id"] not in free for row in left):
        tx.notify("waits")


def _is_free(row: Row) -> bool:
    return row["missing"] == 0 and row["due_at"] is None and row["errand"] is None and _is_spared(row)


def _is_spared(row: Row) -> bool:
    return bool(row["spare"] is None or row["spare"] >= 0)


def _fail_those_in_need(tx: Transaction, broken: Iterable[Row]) -> None:
    # The last one wins: of several needs the one that failed says why, not one that was only skipped for it.
    broken = sorted(broken, key=_ended_badly)
    needed = {row["run_id"]: (row["needed"], row["must_succeed"] == SKIP) for row in broken}
    if not needed:
        return
    endings = {row["run_id"]: row for row in tx.all("find_endings", ids=sorted({one for one, _ in needed.values()}))}

    def outcome(ticket: QueueEntry) -> Failed | Skipped:
        run_id, skip = needed[ticket.run_id]
        failure = _failure(endings[run_id])
        return Skipped(failure.error or "") if skip else failure

    end_unstarted(tx, {ticket: outcome(ticket) for ticket in take_waiting(tx, list(needed))})


def _failure(ending: Row, *, own: bool = False) -> Failed:
    """What the bad end of a run means for one that needed it; `own`: it was a segment of that stage."""
    ended = {"failed": "failed", "cancelled": "was cancelled", "timed_out": "timed out"}[ending["state"]]
    reason = last_line(ending["error"] or ending["failure_type"] or "")
    if ending["failure_type"] == "SKIPPED":
        ended = "was skipped"
    if ending["kind"] in ("stage", "segment"):
        parts = [f"segment {ending['segment']}"] if ending["segment"] else []
        which = " of ".join(parts if parts and own else [*parts, f"stage {ending['stage']}"])
        return Failed("NEED_FAILED", f"{which} {ended}: {reason}")
    if ending["kind"] == "build":
        how = "" if ending["state"] == "failed" else f"it {ended}: "
        return Failed("BUILD_FAILED", f"build failed: {how}{reason} ({ending['job']}, run {ending['run_id']})")
    return Failed("NEED_FAILED", f"it needed run {ending['run_id']} ({ending['job']}), which {ended}: {reason}")


def _fail_those_with_too_many(tx: Transaction, one_too_many: Mapping[str, str]) -> None:
    """Run → the one whose bad end was more than it could spare."""
    if not one_too_many:
        return
    endings = {row["run_id"]: row for row in tx.all("find_endings", ids=sorted(set(one_too_many.values())))}
    failed = take_waiting(tx, list(one_too_many))
    end_unstarted(tx, {ticket: _failure(endings[one_too_many[ticket.run_id]], own=True) for ticket in failed})


def _let_go(tx: Transaction, run_ids: Sequence[str], own: Mapping[str, int]) -> None:
    """These wait for nothing; `own` says which hold of its key a run has kept."""
    if run_ids:
        gone = take_waiting(tx, run_ids)
        ready.put(tx, [ticket.changed(number=own.get(ticket.run_id, 1)) for ticket in gone])


def _holding(tx: Transaction, run_ids: Sequence[str]) -> dict[str, int]:
    """Those of these waiting runs that kept their key (`key_order='strict'`), and which of its holds."""
    if not run_ids:
        return {}
    return {row["run_id"]: row["number"] for row in tx.all("find_holders", ids=sorted(run_ids))}
