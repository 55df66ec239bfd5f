"""Unique: a submission with `unique` returns an existing unfinished run of the same key or arguments.

The transaction that inserts the row (job, digest) creates the run. Other submissions get that run while it is queued
(or active); after that, one of them replaces it by compare-and-swap. Checking whether it is queued needs no lock: a run
starts only after its claim is committed, so a run that is seen as queued starts later than the check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.store.transaction import Row, Transaction
from holdfast.support.errors import StoreBusy

ROUNDS = 100


@dataclass(frozen=True, slots=True)
class UniqueClaim:
    """A submission with `unique`; `running` is true if an existing run that is already running counts as well."""

    run_id: str
    job: str
    digest: str
    running: bool


def find_same(wanted: Sequence[UniqueClaim]) -> dict[str, str]:
    """Map each duplicate within one batch of submissions to the first submission of the same job and digest."""
    firsts: dict[tuple[str, str], str] = {}
    for claim in wanted:
        firsts.setdefault((claim.job, claim.digest), claim.run_id)
    return {claim.run_id: first for claim in wanted if (first := firsts[claim.job, claim.digest]) != claim.run_id}


def find_unique(tx: Transaction, wanted: Sequence[UniqueClaim]) -> dict[str, str]:
    """Map these submissions to the existing runs that they would get."""
    if not wanted:
        return {}
    existing = _existing(tx, wanted)
    found: dict[str, str] = {}
    for claim in wanted:
        row = existing.get((claim.job, claim.digest))
        if row is not None and row["run_id"] != claim.run_id and _counts(row["state"], claim):
            found[claim.run_id] = row["run_id"]
    return found


def take_unique(tx: Transaction, wanted: Sequence[UniqueClaim]) -> dict[str, str]:
    """Register these submissions, which have different digests. Map the duplicates to the existing runs."""
    given: dict[str, str] = {}
    left = sorted(wanted, key=lambda claim: (claim.job, claim.digest))
    for _ in range(ROUNDS):
        if not left:
            break
        ours = {row["run_id"] for row in tx.all("insert_unique_runs", rows=[_row(claim) for claim in left])}
        left = [claim for claim in left if claim.run_id not in ours]
        left = _replace(tx, left, given) if left else left
    else:
        raise StoreBusy("other processes keep submitting the same unique run; nothing was written, try again")
    return given


def _replace(tx: Transaction, left: Sequence[UniqueClaim], given: dict[str, str]) -> list[UniqueClaim]:
    """Replace existing runs that no longer count, and return the claims that lost a race and must try again."""
    existing = _existing(tx, left)
    replacements: list[dict[str, str]] = []
    for claim in left:
        row = existing.get((claim.job, claim.digest))
        if row is None or row["run_id"] == claim.run_id:
            continue
        if _counts(row["state"], claim):
            given[claim.run_id] = row["run_id"]
        else:
            replacements.append(_row(claim) | {"old_id": row["run_id"]})
    ours = {row["run_id"] for row in tx.all("replace_unique_runs", rows=replacements)} if replacements else set()
    ours |= {
        claim.run_id
        for claim in left
        if (row := existing.get((claim.job, claim.digest))) and row["run_id"] == claim.run_id
    }
    return [claim for claim in left if claim.run_id not in ours and claim.run_id not in given]


def _existing(tx: Transaction, wanted: Sequence[UniqueClaim]) -> dict[tuple[str, str], Row]:
    rows = tx.all("find_unique_runs", rows=[_row(claim) for claim in wanted])
    return {(row["job"], row["digest"]): row for row in rows}


def _counts(state: str | None, claim: UniqueClaim) -> bool:
    """Return whether the submission gets an existing run in this state instead of a new one."""
    return state == "queued" or (state == "running" and claim.running)


def _row(claim: UniqueClaim) -> dict[str, str]:
    return {"job": claim.job, "digest": claim.digest, "run_id": claim.run_id}
