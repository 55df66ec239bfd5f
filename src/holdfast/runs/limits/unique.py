"""Unique: a submission that asks to be the only one of its kind gets the run that is there already.

Who inserts the row (job, digest) makes the run; the others are given that run while it is queued (or active), and else
one of them replaces it, by compare-and-swap. Whether it is still queued needs no lock: work begins after its claim is
committed, so what is seen as queued starts after it was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.store.transaction import Row, Transaction
from holdfast.support.errors import StoreBusy

ROUNDS = 100


@dataclass(frozen=True, slots=True)
class UniqueClaim:
    """A run that is to be the only one of its job and digest; `running` says whether one that runs is in its way."""

    run_id: str
    job: str
    digest: str
    running: bool


def find_same(wanted: Sequence[UniqueClaim]) -> dict[str, str]:
    """Of runs that are submitted together, those that another of them stands for."""
    firsts: dict[tuple[str, str], str] = {}
    for only in wanted:
        firsts.setdefault((only.job, only.digest), only.run_id)
    return {only.run_id: first for only in wanted if (first := firsts[only.job, only.digest]) != only.run_id}


def find_unique(tx: Transaction, wanted: Sequence[UniqueClaim]) -> dict[str, str]:
    """For these runs, the ones that are there already."""
    if not wanted:
        return {}
    there = _there(tx, wanted)
    found: dict[str, str] = {}
    for only in wanted:
        row = there.get((only.job, only.digest))
        if row is not None and row["run_id"] != only.run_id and _stands(row["place"], only):
            found[only.run_id] = row["run_id"]
    return found


def take_unique(tx: Transaction, wanted: Sequence[UniqueClaim]) -> dict[str, str]:
    """Be the only ones, each of another kind; for those that are not, the runs that are there already."""
    given: dict[str, str] = {}
    left = sorted(wanted, key=lambda only: (only.job, only.digest))
    for _ in range(ROUNDS):
        if not left:
            break
        ours = {row["run_id"] for row in tx.all("insert_uniques", rows=[_row(only) for only in left])}
        left = [only for only in left if only.run_id not in ours]
        left = _replace(tx, left, given) if left else left
    else:
        raise StoreBusy("others make the same run again and again; nothing was written, try again")
    return given


def _replace(tx: Transaction, left: Sequence[UniqueClaim], given: dict[str, str]) -> list[UniqueClaim]:
    """Take over from runs that have started or ended; who is left has lost a race and looks again."""
    there = _there(tx, left)
    over: list[dict[str, str]] = []
    for only in left:
        row = there.get((only.job, only.digest))
        if row is None or row["run_id"] == only.run_id:
            continue
        if _stands(row["place"], only):
            given[only.run_id] = row["run_id"]
        else:
            over.append(_row(only) | {"old_id": row["run_id"]})
    ours = {row["run_id"] for row in tx.all("replace_uniques", rows=over)} if over else set()
    ours |= {
        only.run_id for only in left if (row := there.get((only.job, only.digest))) and row["run_id"] == only.run_id
    }
    return [only for only in left if only.run_id not in ours and only.run_id not in given]


def _there(tx: Transaction, wanted: Sequence[UniqueClaim]) -> dict[tuple[str, str], Row]:
    rows = tx.all("find_uniques", rows=[_row(only) for only in wanted])
    return {(row["job"], row["digest"]): row for row in rows}


def _stands(place: str | None, only: UniqueClaim) -> bool:
    return place == "queued" or (place == "running" and only.running)


def _row(only: UniqueClaim) -> dict[str, str]:
    return {"job": only.job, "digest": only.digest, "run_id": only.run_id}
