"""Asks: builds that runs of a caller's transaction need; here they are got or created, and become needs like others."""

from __future__ import annotations

from collections import Counter

from holdfast import codec, runs, wishes
from holdfast.orchestrator import promote
from holdfast.store.transaction import Transaction
from holdfast.wishes import Wish


def settle(tx: Transaction, *, limit: int) -> int:
    """Give up to `limit` asks their builds; how many were found."""
    rows = tx.all("find_asks", limit=limit)
    if not rows:
        return 0
    found = wishes.settle(tx, map(Wish.of, rows), make=runs.make)
    # From here on no one can cancel these runs under our hands and leave a need without its wait.
    waiting = {row["run_id"] for row in tx.all("lock_waits", ids=sorted({row["run_id"] for row in rows}))}
    asked = {(row["run_id"], row["number"]): row for row in rows if row["run_id"] in waiting}
    gone = tx.all("delete_asks", rows=[{"run_id": run_id, "number": number} for run_id, number in sorted(asked)])
    needs: dict[tuple[str, str], int] = {}
    # Read only now: another orchestrator may have given one of these runs a part of its builds while we waited for it.
    asking = tx.all("get_submissions", ids=sorted({one["run_id"] for one in gone})) if gone else ()
    needed: dict[str, list[str | None]] = {run["id"]: codec.load(run["needed"]) for run in asking}
    for row in (asked[one["run_id"], one["number"]] for one in gone):
        build = found[Wish.of(row)]
        needed[row["run_id"]][row["number"]] = build.run_id
        if not build.met:
            needs[build.run_id, row["run_id"]] = row["must_succeed"]
    if needed:
        tx.put("set_needed", rows=[{"id": one, "needed": codec.compact(all_)} for one, all_ in sorted(needed.items())])
    new = _need(tx, needs)
    promote.subtract(tx, Counter(one["run_id"] for one in gone) - Counter(run_id for _, run_id in new), bad={})
    return len(gone)


def _need(tx: Transaction, needs: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    """Those of these needs that are new: a run may have named the run of a build as well as the build."""
    if not needs:
        return []
    rows = [{"needed": one, "run_id": run_id, "must_succeed": must} for (one, run_id), must in sorted(needs.items())]
    new = [(row["needed"], row["run_id"]) for row in tx.all("insert_new_needs", rows=rows)]
    if twice := [row for row in rows if row["must_succeed"] and (row["needed"], row["run_id"]) not in new]:
        tx.put("set_must_succeed", rows=twice)
    return new
