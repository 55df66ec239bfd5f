"""Snapshots: read the current state or the result of runs, and find runs by the start of their id."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.runs.submission import read_depends_on, tags_of
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.errors import RunNotFound
from holdfast.values.policies import UNREADABLE_POLICY, load_policy
from holdfast.values.runs import Result, Snapshot


def get_snapshot(tx: Transaction, run_id: str) -> Snapshot:
    """Return the current state of a run, or raise RunNotFound."""
    for left in range(9, -1, -1):
        row = tx.one("find_snapshots", ids=[run_id])
        if row is None:
            raise RunNotFound(f"there is no run {run_id}")
        # Not every database reads all tables in one snapshot. If the run is moving to another table, read it again.
        if row["place"] is not None or left == 0:
            return snapshot_of(row)
    raise AssertionError


def find_ended(tx: Transaction, run_ids: Sequence[str]) -> set[str]:
    """Return which of these runs have ended or do not exist."""
    return set(run_ids) - {row["id"] for row in tx.all("find_open", ids=list(run_ids))}


def find_snapshots(tx: Transaction, run_ids: Sequence[str]) -> list[Snapshot]:
    """Return the current state of these runs, without those that do not exist."""
    return [snapshot_of(row) for row in tx.all("find_snapshots", ids=list(run_ids))] if run_ids else []


def find_results(tx: Transaction, run_ids: Sequence[str]) -> list[Result]:
    """Return the results of these runs, in this order, without runs that have not ended."""
    if not run_ids:
        return []
    found = {row["run_id"]: Result(**row) for row in tx.all("find_results", ids=sorted(set(run_ids)))}
    return [found[run_id] for run_id in run_ids if run_id in found]


def find_ids(tx: Transaction, prefix: str, *, limit: int) -> list[str]:
    """Return the run ids that begin with the prefix, oldest first."""
    if not prefix.isalnum() or not prefix.isascii():
        return []
    return [row["id"] for row in tx.all("find_ids", after=prefix, before=f"{prefix}~", limit=limit)]


def snapshot_of(row: Row) -> Snapshot:
    """Make a snapshot of a row. Values that can't be decoded are marked, so that a damaged row breaks no list."""
    reading = json_text.Reading(row)
    values = {
        **row,
        "args": reading.column("args", json_text.load, instead=str),
        "tags": reading.column("tags", tags_of, instead=lambda marker: {"unreadable": marker}),
        "depends_on": tuple(filter(None, reading.column("depends_on", read_depends_on, instead=lambda _: ()))),
        "keep_forever": bool(row["keep_forever"]),
        "policy": reading.column("policy", load_policy, instead=lambda _: UNREADABLE_POLICY),
    }
    reading.column("result", json_text.shown if row["result"] is None else json_text.load, instead=str)
    return Snapshot(key=values.pop("run_key"), **values, unreadable=reading.unreadable)
