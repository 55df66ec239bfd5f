"""Promote: makes waiting runs ready when they are due, their dependencies have ended, or they get their key lock.

Each function is called in its own transaction and moves at most `limit` runs. A run moves only if our DELETE returned
its row, so several orchestrators can work on the same runs.
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
    """Promote runs that are due. Those with a key now wait only for their key lock."""
    rows = tx.all("find_due", now=tx.now, limit=limit)
    if not rows:
        return 0
    own = _kept_key_locks(tx, [row["run_id"] for row in rows if row["run_key"] is not None])
    free = [row["run_id"] for row in rows if row["run_key"] is None or row["run_id"] in own]
    _make_ready(tx, free, own)
    keyed = sorted(row["run_id"] for row in rows if row["run_key"] is not None and row["run_id"] not in own)
    if keyed:
        tx.put("come_due", ids=keyed)
        tx.notify("waits")
    return len(rows)


def dependents(tx: Transaction, ended: Sequence[str], *, limit: int) -> int:
    """Promote the runs that depend on these ended ones."""
    return _remove_met(tx, tx.all("find_dependents", ids=sorted(ended), limit=limit)) if ended else 0


def dependencies_after(tx: Transaction, cursor: tuple[str, str], *, limit: int) -> tuple[str, str] | None:
    """Check a page of all dependencies. Return the cursor of the next page, or None at the end."""
    rows = tx.all("find_dependencies_after", depends_on=cursor[0], run_id=cursor[1], limit=limit)
    _remove_met(tx, [row for row in rows if row["state"] is not None])
    return (rows[-1]["depends_on"], rows[-1]["run_id"]) if len(rows) == limit else None


def check_waiting(tx: Transaction, *, limit: int) -> int:
    """Check new waiting runs: remove met dependencies, create open key locks, and promote runs that are free."""
    rows = tx.all("find_unchecked", limit=limit)
    if not rows:
        return 0
    _remove_met(
        tx, tx.all("find_met_dependencies_of", ids=[row["run_id"] for row in rows if row["dependencies_left"] > 0])
    )
    free = [
        row for row in rows if row["dependencies_left"] == 0 and row["due_at"] is None and row["pending_action"] is None
    ]
    keyless = [row["run_id"] for row in free if row["run_key"] is None]
    if keyless:
        ready.put(tx, let_go_waiting(tx, keyless))
    keyed = [row for row in free if row["run_key"] is not None]
    own = _kept_key_locks(tx, [row["run_id"] for row in keyed])
    _make_ready(tx, list(own), own)
    wanted = Counter(row["run_key"] for row in keyed if row["run_id"] not in own)
    if wanted:
        limits = dict.fromkeys(wanted, 1)
        for row in keyed:
            limits[row["run_key"]] = max(limits.get(row["run_key"], 1), row["key_limit"])
        tx.put(
            "create_open_key_locks",
            rows=[{"run_key": key, "key_limit": limits[key], "wanted": wanted[key]} for key in sorted(wanted)],
        )
    return len(rows)


def mark_checked(tx: Transaction, *, limit: int) -> int:
    """Mark runs that still have to wait as checked. Return how many.

    This is a later transaction than `check_waiting`, so it sees commits that `check_waiting` missed.
    """
    ids = [row["run_id"] for row in tx.all("find_unchecked", limit=limit)]
    if not ids:
        return 0
    # Lock the rows first. An UPDATE that waits for a row would compare the row's new state with an old snapshot of key
    # locks and dependencies, and a run whose key has just become free would never be checked again.
    tx.all("lock_waits", ids=ids)
    return tx.run("mark_checked", ids=ids)


def assign_key_locks(tx: Transaction, *, limit: int) -> int:
    """Assign each open key lock to the oldest due run that waits for its key; delete it if none waits."""
    open_locks = [(row["run_key"], row["key_number"]) for row in tx.all("find_open_key_locks", limit=limit)]
    if not open_locks:
        return 0
    next_runs = _next_runs(tx, open_locks)
    _assign(tx, next_runs)
    if idle := [{"run_key": key, "key_number": number} for key, number in open_locks if (key, number) not in next_runs]:
        tx.put("delete_open_key_locks", rows=idle)
    return len(open_locks)


def pass_on_key_locks(tx: Transaction) -> None:
    """Assign the key locks that this transaction has opened, so that one commit ends a run and readies the next.

    A lock without a visible waiter stays open. A run may have started to wait in a commit that we don't see, and
    another orchestrator may have checked that run while the lock was still held. Only a check after this commit finds
    such a run.
    """
    if tx.opened:
        assigned = _assign(tx, _next_runs(tx, tx.opened))
        if assigned == len(tx.opened):
            tx.notified.discard("key_locks")


def _assign(tx: Transaction, next_runs: Mapping[tuple[str, int], str]) -> int:
    if not next_runs:
        return 0
    moved = {entry.run_id: entry for entry in take_waiting(tx, sorted(next_runs.values()))}
    assigned = [(key, number, moved[run_id]) for (key, number), run_id in next_runs.items() if run_id in moved]
    tx.put(
        "hand_over_key_locks",
        rows=[{"run_key": key, "key_number": number, "run_id": entry.run_id} for key, number, entry in assigned],
    )
    ready.put(tx, [entry.changed(key_number=number) for _, number, entry in assigned])
    return len(assigned)


def _next_runs(tx: Transaction, open_locks: Sequence[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """Choose a waiting run for each open key lock: the oldest that may have this lock and was not chosen for another.

    Locks with higher numbers come first, because fewer runs have a `key_limit` that high.
    """
    opens = Counter(key for key, _ in open_locks)
    rows = [{"run_key": key, "key_number": number, "opens": opens[key]} for key, number in open_locks]
    waiting: dict[tuple[str, int], list[str]] = {}
    for row in tx.all("find_turns", rows=rows, now=tx.now):
        waiting.setdefault((row["run_key"], row["key_number"]), []).append(row["run_id"])
    next_runs: dict[tuple[str, int], str] = {}
    taken: set[str] = set()
    for lock in sorted(waiting, reverse=True):
        run_id = next((run_id for run_id in waiting[lock] if run_id not in taken), None)
        if run_id is not None:
            taken.add(run_id)
            next_runs[lock] = run_id
    return next_runs


def _remove_met(tx: Transaction, met: Sequence[Row]) -> int:
    """Remove met dependencies and promote the runs that have none left. A run may fail if its dependency failed."""
    if not met:
        return 0
    # Lock the waiting runs first, and count only the rows that our DELETE returned. Otherwise two orchestrators that
    # remove two dependencies of one run could each believe that the other one is still left.
    tx.all("lock_waits", ids=sorted({row["run_id"] for row in met}))
    _fail_dependents(tx, [row for row in met if row["must_succeed"] and row["state"] != "succeeded"])
    rows = sorted(
        ({"depends_on": row["depends_on"], "run_id": row["run_id"]} for row in met),
        key=lambda row: (row["depends_on"], row["run_id"]),
    )
    gone = tx.all("delete_dependencies", rows=rows)
    failed = {(row["depends_on"], row["run_id"]) for row in met if _ended_badly(row)}
    bad: dict[str, list[str]] = {}
    for row in gone:
        if (row["depends_on"], row["run_id"]) in failed:
            bad.setdefault(row["run_id"], []).append(row["depends_on"])
    subtract_dependencies(tx, Counter(row["run_id"] for row in gone), bad=bad)
    return len(met)


def _ended_badly(row: Row) -> bool:
    """Whether a dependency failed. A skipped one does not count: the failure that caused the skip already counts."""
    return bool(row["state"] != "succeeded" and row["failure_type"] != "SKIPPED")


def subtract_dependencies(tx: Transaction, removed: Mapping[str, int], *, bad: Mapping[str, Sequence[str]]) -> None:
    """Subtract removed dependencies per run, and promote the runs that have none left.

    The caller has locked these runs. `bad` has, per run, the removed dependencies that failed.
    """
    if not removed:
        return
    counts = [{"run_id": one, "count": count, "bad": len(bad.get(one, ()))} for one, count in sorted(removed.items())]
    left = tx.all("subtract_dependencies", rows=counts)
    _fail_over_limit(tx, {row["run_id"]: bad[row["run_id"]][0] for row in left if not _is_within_limit(row)})
    free = [row["run_id"] for row in left if _is_free(row) and row["run_key"] is None]
    ready.put(tx, take_waiting(tx, free) if free else ())
    if any(row["dependencies_left"] <= 0 and row["run_id"] not in free for row in left):
        tx.notify("waits")


def _is_free(row: Row) -> bool:
    return (
        row["dependencies_left"] == 0
        and row["due_at"] is None
        and row["pending_action"] is None
        and _is_within_limit(row)
    )


def _is_within_limit(row: Row) -> bool:
    return bool(row["failures_allowed"] is None or row["failures_allowed"] >= 0)


def _fail_dependents(tx: Transaction, failed: Iterable[Row]) -> None:
    """Fail, or skip, the runs whose dependencies had to succeed and did not."""
    # The last row of a run wins, so that its error names a dependency that failed rather than one that was skipped.
    failed = sorted(failed, key=_ended_badly)
    depends_on = {row["run_id"]: (row["depends_on"], row["must_succeed"] == SKIP) for row in failed}
    if not depends_on:
        return
    endings = {
        row["run_id"]: row
        for row in tx.all("find_dependency_outcomes", ids=sorted({one for one, _ in depends_on.values()}))
    }

    def outcome(entry: QueueEntry) -> Failed | Skipped:
        run_id, skip = depends_on[entry.run_id]
        failure = _failure(endings[run_id])
        return Skipped(failure.error or "") if skip else failure

    end_unstarted(tx, {entry: outcome(entry) for entry in take_waiting(tx, list(depends_on))})


def _failure(ending: Row, *, own: bool = False) -> Failed:
    """Return the failure of a run whose dependency ended like this. `own`: the dependency is the run's own segment."""
    ended = {"failed": "failed", "cancelled": "was cancelled", "timed_out": "timed out"}[ending["state"]]
    reason = last_line(ending["error"] or ending["failure_type"] or "")
    if ending["failure_type"] == "SKIPPED":
        ended = "was skipped"
    if ending["kind"] in ("stage", "segment"):
        parts = [f"segment {ending['segment']}"] if ending["segment"] else []
        name = " of ".join(parts if parts and own else [*parts, f"stage {ending['stage']}"])
        return Failed("DEPENDENCY_FAILED", f"{name} {ended}: {reason}")
    if ending["kind"] == "build":
        how = "" if ending["state"] == "failed" else f"it {ended}: "
        return Failed("BUILD_FAILED", f"build failed: {how}{reason} ({ending['job']}, run {ending['run_id']})")
    return Failed("DEPENDENCY_FAILED", f"depends on run {ending['run_id']} ({ending['job']}), which {ended}: {reason}")


def _fail_over_limit(tx: Transaction, over_limit: Mapping[str, str]) -> None:
    """Fail the runs that had more failed dependencies than allowed; `over_limit` has one failed dependency of each."""
    if not over_limit:
        return
    endings = {row["run_id"]: row for row in tx.all("find_dependency_outcomes", ids=sorted(set(over_limit.values())))}
    failed = take_waiting(tx, list(over_limit))
    end_unstarted(tx, {entry: _failure(endings[over_limit[entry.run_id]], own=True) for entry in failed})


def _make_ready(tx: Transaction, run_ids: Sequence[str], own: Mapping[str, int]) -> None:
    """Make these runs ready. `own` has the number of the key lock that a run has kept."""
    if run_ids:
        removed = take_waiting(tx, run_ids)
        ready.put(tx, [entry.changed(key_number=own.get(entry.run_id, 1)) for entry in removed])


def _kept_key_locks(tx: Transaction, run_ids: Sequence[str]) -> dict[str, int]:
    """Return which of these waiting runs kept their key lock (`key_order='strict'`), with its number."""
    if not run_ids:
        return {}
    return {row["run_id"]: row["key_number"] for row in tx.all("find_key_holders", ids=sorted(run_ids))}
