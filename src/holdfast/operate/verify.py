"""Inspections: questions that a person asks. All of it reads; only `again` submits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from holdfast.runs.finish import seal_outcome
from holdfast.store.store import Store
from holdfast.store.transaction import Row
from holdfast.values.runs import Finding

_ORDER = {
    "RUN_QUEUED": 0,
    "RUN_STARTED": 1,
    "STEP_STARTED": 2,
    "STEP_RETRIED": 2,
    "STEP_FORGOTTEN": 2,
    "STEP_FINISHED": 2,  # as they come: a step may begin in the instant in which the one before it ends
    "RUN_RETRIED": 6,
    "RUN_PUT_OFF": 6,
    "RUN_HANDED_BACK": 6,
    "RUN_WAITS": 6,
}
_ORDER |= dict.fromkeys(("RUN_SUCCEEDED", "RUN_FAILED", "RUN_TIMED_OUT", "RUN_CANCELLED"), 7)


def verify(store: Store, *, lease: timedelta) -> list[Finding]:
    """What must never be, found on the live database in one snapshot, and still there at a second look."""
    with store.reading() as tx:
        first = {_finding(row) for row in tx.all("verify", late_at=tx.now - 2 * lease - timedelta(seconds=10))}
    if first:
        with store.reading() as tx:
            first &= {_finding(row) for row in tx.all("verify", late_at=tx.now - 2 * lease - timedelta(seconds=10))}
    return sorted([*first, *_changed(store)], key=lambda finding: (finding.problem, finding.run_id))


def _finding(row: Row) -> Finding:
    return Finding(problem=row["problem"], run_id=row["run_id"] or "", detail=row["detail"] or "")


def _changed(store: Store) -> Iterator[Finding]:
    """Outcomes that are not as they were written."""
    after = ""
    while True:
        with store.reading() as tx:
            page = tx.all("read_outcomes", after=after, limit=5000)
        for row in page:
            if seal_outcome(row) != row["seal"]:
                yield Finding(
                    problem="outcome_changed",
                    run_id=row["run_id"],
                    detail="the outcome is not as it was written",
                )
        if len(page) < 5000:
            return
        after = page[-1]["run_id"]
