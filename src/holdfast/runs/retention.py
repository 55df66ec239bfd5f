"""Retention: delete finished runs past their retention period.

    ended ── retention ──▶ [ artifacts ] ──▶ [ events ] ──▶ [ steps, slots, outcome, run ]

Each bracket is a transaction. The row of the run goes last, so that after a crash the next pass finds the run and
completes its deletion. A family (a run with its stages, segments and children) is deleted together, once the retention
periods of all its runs are over.

Some runs stay longer:
- a run that is referenced by a rerun, a dependency, a build, or a slot that its schedule may read again
- the run of a build: its retention period begins when the build becomes stale
- a run with `keep_forever`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import get_args

from holdfast.store.transaction import Row, Transaction
from holdfast.support.clock import EPOCH
from holdfast.support.errors import InvalidArguments, RunInUse, RunNotFound
from holdfast.support.settings import Settings
from holdfast.values.runs import State

PAGE = 1000


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """How much retention has deleted, or would delete."""

    runs: int = 0
    artifacts: int = 0
    bytes: int = 0
    events: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(Pruned)})

    def __str__(self) -> str:
        files = f"{_count(self.artifacts, 'artifact')} ({self.bytes:,} bytes)" if self.artifacts else "no artifacts"
        return f"{_count(self.runs, 'run')}, {files}, {_count(self.events, 'event')}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}" if number else f"no {what}s"


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in the outcomes of one state."""

    finished_at: datetime = EPOCH
    run_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A finished run, with the fields that retention needs."""

    run_id: str
    parent_id: str | None
    keep_forever: bool
    finished_at: datetime


def limits(settings: Settings, now: datetime) -> dict[State, datetime]:
    """Return, for each state, the time before which a run must have ended to be deleted.

    States whose runs are kept forever are left out.
    """
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise InvalidArguments(f"now must be a datetime with a time zone, not {now!r}")
    periods = {
        state: settings.retention if state == "succeeded" else settings.retention_failed for state in get_args(State)
    }
    return {state: now - period for state, period in periods.items() if period}


def page(tx: Transaction, state: State, cursor: Cursor, *, before: datetime, limit: int) -> list[Ended]:
    """Return runs that ended in this state earlier than `before`, starting at the cursor."""
    rows = tx.all("find_ended", state=state, since=cursor.finished_at, after=cursor.run_id, before=before, limit=limit)
    return [Ended(**row | {"keep_forever": bool(row["keep_forever"])}) for row in rows]


def heads(tx: Transaction, ended: Sequence[Ended]) -> list[str]:
    """Return the runs that are not kept forever and have no existing parent. Parts are deleted with their parent."""
    parents = sorted({one.parent_id for one in ended if one.parent_id is not None})
    existing = {row["id"] for row in tx.all("find_runs", ids=parents)} if parents else set()
    return [one.run_id for one in ended if not one.keep_forever and one.parent_id not in existing]


def families(tx: Transaction, run_ids: Sequence[str], limits: Mapping[State, datetime]) -> dict[str, list[str]]:
    """Return the family of each of these `heads`, youngest generation first and the head last.

    Families that are not yet past retention are left out.
    """
    head = {run_id: run_id for run_id in run_ids}
    found: dict[str, list[str]] = {run_id: [run_id] for run_id in run_ids}
    generation = list(run_ids)
    while generation:
        children = tx.all("find_descendants", ids=sorted(generation))
        for child in children:
            first = head[child["id"]] = head[child["parent_id"]]
            if first in found:
                found[first].append(child["id"])
            if _stays(child, limits):
                found.pop(first, None)
        generation = [child["id"] for child in children if head[child["id"]] in found]
    return {first: members[::-1] for first, members in found.items()}


def family(tx: Transaction, run_id: str) -> list[str]:
    """Return a run and its family in the order in which they must be deleted; raise RunInUse if that is not allowed."""
    run = tx.one("get_submissions", ids=[run_id])
    if run is None:
        raise RunNotFound(f"there is no run {run_id}")
    if run["parent_id"] is not None and tx.all("find_runs", ids=[run["parent_id"]]):
        raise RunInUse(f"run {run_id} is a part of run {run['parent_id']}; delete that run instead")
    members = [run_id]
    generation = members
    while generation:
        generation = [child["id"] for child in tx.all("find_descendants", ids=sorted(generation))]
        members = members + generation
    in_use = {one for first in range(0, len(members), PAGE) for one in named(tx, members[first : first + PAGE])}
    if in_use:
        ended = {row["run_id"] for row in tx.all("find_outcomes", ids=sorted(in_use))}
        if unfinished := sorted(in_use - ended):
            raise RunInUse(f"run {unfinished[0]} has not ended; cancel it, wait until it has stopped, then delete it")
        raise RunInUse(
            f"run {min(in_use)} is kept forever, or still referenced by a rerun, a dependency, a build, a slot or a "
            "cancellation of its children"
        )
    return members[::-1]


def _stays(child: Row, limits: Mapping[State, datetime]) -> bool:
    before = limits.get(child["state"])
    return bool(child["keep_forever"]) or before is None or child["finished_at"] >= before


def served(tx: Transaction, run_ids: Iterable[str], *, since: datetime) -> set[str]:
    """Return the runs whose build became stale or was rebuilt at `since` or later, so that retention keeps them."""
    return {row["id"] for row in tx.all("find_served", ids=sorted(run_ids), since=since)}


def named(tx: Transaction, run_ids: Iterable[str]) -> set[str]:
    """Return the runs that can't be deleted: they are referenced, kept forever, or have not ended."""
    return {row["id"] for row in tx.all("find_still_referenced", ids=sorted(run_ids))}


def held(tx: Transaction, run_ids: Iterable[str]) -> list[str]:
    """Lock these runs, so that no new reference to them can be added, and return those that may still be deleted."""
    locked = [row["id"] for row in tx.all("lock_ended", ids=sorted(run_ids))]
    return sorted(set(locked) - named(tx, locked)) if locked else []


def belongings(tx: Transaction, run_ids: Sequence[str]) -> Pruned:
    """Count the artifacts and events that would be deleted with these runs."""
    row = tx.one("count_related_rows", ids=sorted(run_ids))
    assert row is not None
    return Pruned(runs=len(run_ids), artifacts=row["artifacts"], bytes=row["bytes"], events=row["events"])


def remove_events(tx: Transaction, run_ids: Sequence[str], *, limit: int) -> int:
    """Delete up to `limit` events of these runs, and return their number."""
    return tx.run("delete_events_of", ids=sorted(run_ids), limit=limit) if run_ids else 0


def remove_old_events(tx: Transaction, *, before: datetime, limit: int) -> int:
    """Delete up to `limit` old events that belong to no run, and return their number."""
    return tx.run("delete_old_events", before=before, limit=limit)


def remove(tx: Transaction, run_ids: Sequence[str]) -> int:
    """Delete these runs with their remaining rows, and return their number. Artifacts and events must be gone."""
    ids = held(tx, run_ids)
    if not ids:
        return 0
    gate = tx.ids.new(tx.now)
    tx.put("delete_slots_of", ids=ids)
    tx.put("delete_builds_of", ids=ids)
    tx.put("delete_unique_runs_of", ids=ids)
    tx.put("delete_steps_of", ids=ids)
    tx.put("delete_forgotten_steps_of", ids=ids)
    tx.put("open_retention_gate", id=gate)
    tx.put("delete_outcomes", ids=ids)
    tx.put("close_retention_gate", id=gate)
    return tx.run("delete_runs", ids=ids)
