"""Snapshots: read a run as it stands now, or what it came to, and find runs by id."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.runs.submission import needed_of, tags_of
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.errors import RunNotFound
from holdfast.values.policies import UNREADABLE_POLICY, load_policy
from holdfast.values.runs import Result, Snapshot


def get_snapshot(tx: Transaction, run_id: str) -> Snapshot:
    """The run as it stands now, or RunNotFound."""
    for left in range(9, -1, -1):
        row = tx.one("find_snapshots", ids=[run_id])
        if row is None:
            raise RunNotFound(f"there is no run {run_id}")
        # Not every store reads its tables in one snapshot: a run on its way between two is looked for again.
        if row["place"] is not None or left == 0:
            return snapshot_of(row)
    raise AssertionError


def find_ended(tx: Transaction, run_ids: Sequence[str]) -> set[str]:
    """Of these runs, those that have ended or do not exist."""
    return set(run_ids) - {row["id"] for row in tx.all("find_open", ids=list(run_ids))}


def find_snapshots(tx: Transaction, run_ids: Sequence[str]) -> list[Snapshot]:
    """Those of these runs that exist, as they stand now."""
    return [snapshot_of(row) for row in tx.all("find_snapshots", ids=list(run_ids))] if run_ids else []


def find_results(tx: Transaction, run_ids: Sequence[str]) -> list[Result]:
    """The results of these runs, in this order; a run that has not ended has none and is left out."""
    if not run_ids:
        return []
    found = {row["run_id"]: Result(**row) for row in tx.all("find_results", ids=sorted(set(run_ids)))}
    return [found[run_id] for run_id in run_ids if run_id in found]


def find_ids(tx: Transaction, prefix: str, *, limit: int) -> list[str]:
    """The ids that begin like that, the oldest first."""
    if not prefix.isalnum() or not prefix.isascii():
        return []
    return [row["id"] for row in tx.all("find_ids", after=prefix, before=f"{prefix}~", limit=limit)]


def snapshot_of(row: Row) -> Snapshot:
    """The run of a row. A value that can't be decoded is marked: one damaged row must not break a list."""
    reading = json_text.Reading(row)
    values = {
        **row,
        "args": reading.column("args", json_text.load, instead=str),
        "tags": reading.column("tags", tags_of, instead=lambda marker: {"unreadable": marker}),
        "needed": tuple(filter(None, reading.column("needed", needed_of, instead=lambda _: ()))),
        "audit": bool(row["audit"]),
        "policy": reading.column("policy", load_policy, instead=lambda _: UNREADABLE_POLICY),
    }
    reading.column("result", json_text.shown if row["result"] is None else json_text.load, instead=str)
    return Snapshot(key=values.pop("run_key"), **values, unreadable=reading.unreadable)
