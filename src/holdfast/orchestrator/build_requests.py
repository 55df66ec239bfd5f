"""Build requests: get or create the builds that runs of a caller's transaction need, and let the runs wait for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from holdfast.orchestrator import promote
from holdfast.runs.build_once import get_or_create
from holdfast.runs.finish import end_unstarted
from holdfast.runs.outcomes import Failed
from holdfast.runs.submission import needed_of
from holdfast.runs.submit import submit_builds
from holdfast.runs.waiting import take_waiting
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.errors import Unreadable
from holdfast.values.builds import Wish


def settle(tx: Transaction, *, limit: int) -> int:
    """Give up to `limit` asks their builds; how many were found."""
    rows = tx.all("find_asks", limit=limit)
    failed = _fail_unreadable(tx, rows)
    rows = [row for row in rows if row["run_id"] not in failed]
    if not rows:
        return len(failed)
    # The newest request decides whether a cancelled build is made once more; older ones share the cancel, below.
    wished_at = {Wish.of(row): row["created_at"] for row in sorted(rows, key=lambda row: row["created_at"])}
    found = get_or_create(tx, wished_at, make=submit_builds, wished_at=wished_at)
    # From here on no one can cancel these runs under our hands and leave a need without its wait.
    waiting = {row["run_id"] for row in tx.all("lock_waits", ids=sorted({row["run_id"] for row in rows}))}
    asked = {(row["run_id"], row["number"]): row for row in rows if row["run_id"] in waiting}
    gone = tx.all("delete_asks", rows=[{"run_id": run_id, "number": number} for run_id, number in sorted(asked)])
    needs: dict[tuple[str, str], int] = {}
    # Read only now: another orchestrator may have given one of these runs a part of its builds while we waited for it.
    asking = tx.all("get_submissions", ids=sorted({one["run_id"] for one in gone})) if gone else ()
    needed = {run["id"]: _needed(run["needed"]) for run in asking}
    for row in (asked[one["run_id"], one["number"]] for one in gone):
        build = found[Wish.of(row)].for_wish_at(row["created_at"])
        if (names := needed[row["run_id"]]) is not None:
            names[row["number"]] = build.run_id
        if not build.met:
            needs[build.run_id, row["run_id"]] = row["must_succeed"]
    if needed:
        readable = sorted((run_id, names) for run_id, names in needed.items() if names is not None)
        tx.put("set_needed", rows=[{"id": run_id, "needed": json_text.compact(names)} for run_id, names in readable])
    new = _need(tx, needs)
    promote.subtract(tx, Counter(one["run_id"] for one in gone) - Counter(run_id for _, run_id in new), bad={})
    return len(gone) + len(failed)


def _fail_unreadable(tx: Transaction, rows: Sequence[Row]) -> set[str]:
    """End the runs whose asks can't be decoded: they would wait for ever, and keep the others from their builds."""
    damaged: dict[str, str] = {}
    for row in rows:
        try:
            Wish.of(row)
        except (ValueError, KeyError, TypeError) as error:
            damaged[row["run_id"]] = f"a build that it needs can't be decoded: {error}"
    if not damaged:
        return set()
    removed = take_waiting(tx, sorted(damaged))
    end_unstarted(tx, {ticket: Failed("RUN_UNREADABLE", damaged[ticket.run_id]) for ticket in removed})
    return set(damaged)


def _needed(text: str) -> list[str | None] | None:
    """What a run needs, in order; None if that can't be decoded: the worker that claims the run fails it."""
    try:
        return list(needed_of(text))
    except Unreadable:
        return None


def _need(tx: Transaction, needs: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    """Those of these needs that are new: a run may have named the run of a build as well as the build."""
    if not needs:
        return []
    rows = [{"needed": one, "run_id": run_id, "must_succeed": must} for (one, run_id), must in sorted(needs.items())]
    new = [(row["needed"], row["run_id"]) for row in tx.all("insert_new_needs", rows=rows)]
    if twice := [row for row in rows if row["must_succeed"] and (row["needed"], row["run_id"]) not in new]:
        tx.put("set_must_succeed", rows=twice)
    return new
