"""Retention: what has ended long ago goes, so that the tables stay as large as the work and not as old as it.

    ended ── retain ──▶ [ artifacts ] ──▶ [ events ] ──▶ [ steps, slots, outcome, run ]

Each bracket is a transaction; the run's own row goes last, so that whatever a crash leaves is found again. What someone
names stays: a need, a build, a slot that its schedule may look at again; the time of what made a build begins when that
is good no more. What is marked as audit log stays for ever.
A family (a run, its stages, segments and children) goes together, and only when all of it has ended long ago.
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
class Removed:
    """How much retention has removed, or would."""

    runs: int = 0
    artifacts: int = 0
    bytes: int = 0
    events: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(Removed)})

    def __str__(self) -> str:
        files = f"{_count(self.artifacts, 'artifact')} ({self.bytes:,} bytes)" if self.artifacts else "no artifacts"
        return f"{_count(self.runs, 'run')}, {files}, {_count(self.events, 'event')}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}" if number else f"no {what}s"


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where we are among the outcomes of one state."""

    finished_at: datetime = EPOCH
    run_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run that has ended, and what matters of it here."""

    run_id: str
    parent_id: str | None
    audit: bool
    finished_at: datetime


def limits(settings: Settings, now: datetime) -> dict[State, datetime]:
    """For each state the moment before which a run must have ended to go; what is kept for ever is not there."""
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise InvalidArguments(f"now is a datetime with a time zone, not {now!r}")
    kept = {state: settings.retain if state == "succeeded" else settings.retain_failed for state in get_args(State)}
    return {state: now - for_ for state, for_ in kept.items() if for_}


def page(tx: Transaction, state: State, cursor: Cursor, *, before: datetime, limit: int) -> list[Ended]:
    """Runs that ended like this before then, from the cursor on."""
    rows = tx.all("find_ended", state=state, since=cursor.finished_at, after=cursor.run_id, before=before, limit=limit)
    return [Ended(**row | {"audit": bool(row["audit"])}) for row in rows]


def heads(tx: Transaction, ended: Sequence[Ended]) -> list[str]:
    """Those of these runs that stand alone or at the head of a family; the others go with theirs."""
    parents = sorted({one.parent_id for one in ended if one.parent_id is not None})
    living = {row["id"] for row in tx.all("find_runs", ids=parents)} if parents else set()
    return [one.run_id for one in ended if not one.audit and one.parent_id not in living]


def families(tx: Transaction, run_ids: Sequence[str], limits: Mapping[State, datetime]) -> dict[str, list[str]]:
    """For each of these heads its family, the youngest generation first and the head last; those that may not go are
    left out."""
    head = {run_id: run_id for run_id in run_ids}
    found: dict[str, list[str]] = {run_id: [run_id] for run_id in run_ids}
    generation = list(run_ids)
    while generation:
        children = tx.all("find_offspring", ids=sorted(generation))
        for child in children:
            first = head[child["id"]] = head[child["parent_id"]]
            if first in found:
                found[first].append(child["id"])
            if _stays(child, limits):
                found.pop(first, None)
        generation = [child["id"] for child in children if head[child["id"]] in found]
    return {first: members[::-1] for first, members in found.items()}


def family(tx: Transaction, run_id: str) -> list[str]:
    """A run that may be deleted now with all that belongs to it, in the order in which they must go; or RunInUse."""
    run = tx.one("get_submissions", ids=[run_id])
    if run is None:
        raise RunNotFound(f"there is no run {run_id}")
    if run["parent_id"] is not None and tx.all("find_runs", ids=[run["parent_id"]]):
        raise RunInUse(f"run {run_id} is a part of run {run['parent_id']}: delete that one")
    members = [run_id]
    generation = members
    while generation:
        generation = [child["id"] for child in tx.all("find_offspring", ids=sorted(generation))]
        members = members + generation
    spared = {one for first in range(0, len(members), PAGE) for one in named(tx, members[first : first + PAGE])}
    if spared:
        ended = {row["run_id"] for row in tx.all("find_outcomes", ids=sorted(spared))}
        if left := sorted(spared - ended):
            raise RunInUse(f"run {left[0]} has not ended: cancel it, wait until it has stopped, and delete it then")
        raise RunInUse(
            f"run {min(spared)} is still named: by a rerun, a need, a build, a slot, a stop, or as audit log"
        )
    return members[::-1]


def _stays(child: Row, limits: Mapping[State, datetime]) -> bool:
    before = limits.get(child["state"])
    return bool(child["audit"]) or before is None or child["finished_at"] >= before


def served(tx: Transaction, run_ids: Iterable[str], *, since: datetime) -> set[str]:
    """Those of these runs that made what was good until then or later: a run that was given it may still use it."""
    return {row["id"] for row in tx.all("find_served", ids=sorted(run_ids), since=since)}


def named(tx: Transaction, run_ids: Iterable[str]) -> set[str]:
    """Those of these runs that can't go: someone names them, or they have not ended."""
    return {row["id"] for row in tx.all("find_spared", ids=sorted(run_ids))}


def held(tx: Transaction, run_ids: Iterable[str]) -> list[str]:
    """Those of these runs that still may go; no one can begin to need them before this transaction ends."""
    locked = [row["id"] for row in tx.all("lock_ended", ids=sorted(run_ids))]
    return sorted(set(locked) - named(tx, locked)) if locked else []


def belongings(tx: Transaction, run_ids: Sequence[str]) -> Removed:
    """What would go with these runs."""
    row = tx.one("count_belongings", ids=sorted(run_ids))
    assert row is not None
    return Removed(runs=len(run_ids), artifacts=row["artifacts"], bytes=row["bytes"], events=row["events"])


def remove_events(tx: Transaction, run_ids: Sequence[str], *, limit: int) -> int:
    """Up to so many events of these runs."""
    return tx.run("delete_events_of", ids=sorted(run_ids), limit=limit) if run_ids else 0


def remove_old_events(tx: Transaction, *, before: datetime, limit: int) -> int:
    """Up to so many events that belong to no run."""
    return tx.run("delete_old_events", before=before, limit=limit)


def remove(tx: Transaction, run_ids: Sequence[str]) -> int:
    """These runs, with all that belongs to them alone; their artifacts and events are gone already."""
    ids = held(tx, run_ids)
    if not ids:
        return 0
    gate = tx.ids.new(tx.now)
    tx.put("delete_slots_of", ids=ids)
    tx.put("delete_builds_of", ids=ids)
    tx.put("delete_uniques_of", ids=ids)
    tx.put("delete_steps_of", ids=ids)
    tx.put("delete_forgotten_of", ids=ids)
    tx.put("open_gate", id=gate)
    tx.put("delete_outcomes", ids=ids)
    tx.put("close_gate", id=gate)
    return tx.run("delete_runs", ids=ids)
