"""Verify: check that the live database is consistent, above all that every run is in exactly one place."""

from __future__ import annotations

from datetime import timedelta

from holdfast.store.store import Store
from holdfast.store.transaction import Row
from holdfast.values.runs import Finding


def verify(store: Store, *, lease: timedelta) -> list[Finding]:
    """Return the contradictions in the database. Each was found in two snapshots, so it is not a change in progress."""
    with store.reading() as tx:
        findings = {_finding(row) for row in tx.all("verify", late_at=tx.now - 2 * lease - timedelta(seconds=10))}
    if findings:
        with store.reading() as tx:
            findings &= {_finding(row) for row in tx.all("verify", late_at=tx.now - 2 * lease - timedelta(seconds=10))}
    return sorted(findings, key=lambda finding: (finding.problem, finding.run_id))


def _finding(row: Row) -> Finding:
    return Finding(problem=row["problem"], run_id=row["run_id"] or "", detail=row["detail"] or "")
