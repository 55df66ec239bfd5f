"""Build requests: get or create the builds of runs that were submitted in a caller transaction.

In a caller transaction only the request is stored. If the build were created there, other transactions that request it
would have to wait for the commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from holdfast.orchestrator import promote
from holdfast.runs.build_once import get_or_create
from holdfast.runs.finish import end_unstarted
from holdfast.runs.outcomes import Failed
from holdfast.runs.submission import read_depends_on
from holdfast.runs.submit import submit_builds
from holdfast.runs.waiting import take_waiting
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.errors import Unreadable
from holdfast.values.builds import BuildRequest


def resolve(tx: Transaction, *, limit: int) -> int:
    """Resolve up to `limit` build requests: find or create each build, and make the run depend on it.

    Return how many were resolved.
    """
    rows = tx.all("find_build_requests", limit=limit)
    failed = _fail_unreadable(tx, rows)
    rows = [row for row in rows if row["run_id"] not in failed]
    if not rows:
        return len(failed)
    # The newest request decides whether a cancelled build is started again. A request made before the cancellation gets
    # the cancelled run, through `for_request_at` below.
    requested_at = {BuildRequest.of(row): row["created_at"] for row in sorted(rows, key=lambda row: row["created_at"])}
    builds = get_or_create(tx, requested_at, make=submit_builds, requested_at=requested_at)
    # Lock the waiting runs, so that none of them is cancelled now and leaves a dependency behind.
    waiting = {row["run_id"] for row in tx.all("lock_waits", ids=sorted({row["run_id"] for row in rows}))}
    requests = {(row["run_id"], row["number"]): row for row in rows if row["run_id"] in waiting}
    deleted = tx.all(
        "delete_build_requests", rows=[{"run_id": run_id, "number": number} for run_id, number in sorted(requests)]
    )
    dependencies: dict[tuple[str, str], int] = {}
    # Read only after the lock: another orchestrator may have resolved other requests of these runs while we waited.
    runs = tx.all("get_submissions", ids=sorted({one["run_id"] for one in deleted})) if deleted else ()
    depends_on = {run["id"]: _depends_on(run["depends_on"]) for run in runs}
    for row in (requests[one["run_id"], one["number"]] for one in deleted):
        build = builds[BuildRequest.of(row)].for_request_at(row["created_at"])
        if (names := depends_on[row["run_id"]]) is not None:
            names[row["number"]] = build.run_id
        if not build.met:
            dependencies[build.run_id, row["run_id"]] = row["must_succeed"]
    if depends_on:
        readable = sorted((run_id, names) for run_id, names in depends_on.items() if names is not None)
        tx.put(
            "set_depends_on",
            rows=[{"id": run_id, "depends_on": json_text.compact(names)} for run_id, names in readable],
        )
    new = _insert(tx, dependencies)
    met = Counter(one["run_id"] for one in deleted) - Counter(run_id for _, run_id in new)
    promote.subtract_dependencies(tx, met, bad={})
    return len(deleted) + len(failed)


def _fail_unreadable(tx: Transaction, rows: Sequence[Row]) -> set[str]:
    """Fail the runs whose build requests can't be decoded; they would wait for ever and block the other requests."""
    damaged: dict[str, str] = {}
    for row in rows:
        try:
            BuildRequest.of(row)
        except (ValueError, KeyError, TypeError) as error:
            damaged[row["run_id"]] = f"a stored build request can't be decoded: {error}"
    if not damaged:
        return set()
    removed = take_waiting(tx, sorted(damaged))
    end_unstarted(tx, {entry: Failed("RUN_UNREADABLE", damaged[entry.run_id]) for entry in removed})
    return set(damaged)


def _depends_on(text: str) -> list[str | None] | None:
    """Return the dependencies of a run, in order. None means that they can't be decoded: the run fails when claimed."""
    try:
        return list(read_depends_on(text))
    except Unreadable:
        return None


def _insert(tx: Transaction, dependencies: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    """Insert dependencies and return the new ones; a run may already depend on the run of a build."""
    if not dependencies:
        return []
    rows = [
        {"depends_on": one, "run_id": run_id, "must_succeed": must}
        for (one, run_id), must in sorted(dependencies.items())
    ]
    new = [(row["depends_on"], row["run_id"]) for row in tx.all("insert_new_dependencies", rows=rows)]
    if existing := [row for row in rows if row["must_succeed"] and (row["depends_on"], row["run_id"]) not in new]:
        tx.put("set_must_succeed", rows=existing)
    return new
