"""Verify: check on the live database that every run is in exactly one place."""

from __future__ import annotations

from datetime import timedelta

from holdfast.store.store import Store
from holdfast.store.transaction import Row
from holdfast.values.runs import Finding


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
