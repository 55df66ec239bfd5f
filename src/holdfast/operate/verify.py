"""Verify: check on the live database that every run is in exactly one place."""

from __future__ import annotations

from datetime import timedelta

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
    return sorted(first, key=lambda finding: (finding.problem, finding.run_id))


def _finding(row: Row) -> Finding:
    return Finding(problem=row["problem"], run_id=row["run_id"] or "", detail=row["detail"] or "")
