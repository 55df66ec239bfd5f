"""Builds: what is made once, by its identity; the run that makes it says how far it is.

    queued ──▶ building ──▶ ready ──invalidate──▶ stale ──the next who asks──▶ queued
                        └─▶ failed | cancelled ───────────the next who asks──▶ queued

Each making is a run of its own; earlier ones stay in history, each named by the one that repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from holdfast import codec, runs, wishes
from holdfast.errors import BuildNotFound, InvalidPolicy, Unreadable
from holdfast.policies import Policy
from holdfast.runs import Snapshot
from holdfast.store.transaction import Row, Transaction
from holdfast.wishes import Making, Wish

STATES = ("queued", "building", "ready", "failed", "cancelled", "stale")
HISTORY = 100
RECENT = 5_000
"""So many of the newest runs that needed anything are looked at when uses are counted."""


@dataclass(frozen=True, kw_only=True)
class Build:
    """A build as it stood when it was read. `waiting` counts the runs that wait for it."""

    job: str
    scope: str
    fingerprint: str
    run_id: str
    state: str
    stale_at: datetime | None
    because: str | None
    since_at: datetime
    holder: str | None
    started_at: datetime | None
    finished_at: datetime | None
    failure_type: str | None
    error: str | None
    result: str | None
    waiting: int
    unreadable: str | None = None
    """Which stored values can't be decoded, and why."""

    def saved(self, uses: int) -> timedelta | None:
        """What its users did not spend on makings of their own: one made it for all of them."""
        if self.started_at is None or self.finished_at is None or self.state not in ("ready", "stale"):
            return None
        return max(0, uses - 1) * (self.finished_at - self.started_at)


Which: TypeAlias = Wish | Build | str
"""A build: by a wish for it, by itself as read before, or by the id of a run that made it, now or earlier."""


def get(tx: Transaction, which: Which) -> Build:
    """The build as it stands now, or BuildNotFound."""
    job, scope, fingerprint = _identity(tx, which)
    row = tx.one("get_build", job=job, scope=scope, fingerprint=fingerprint)
    if row is None:
        raise BuildNotFound(f"no one has asked for build {job} {scope} {fingerprint}")
    return _build(row)


def list_builds(
    tx: Transaction,
    *,
    job: str | None,
    scope: str | None,
    fingerprint: str | None,
    state: str | None,
    limit: int,
    before: str | None,
) -> list[Build]:
    """The newest makings first; `before` continues after the last run of the page before."""
    rows = tx.all(
        "list_builds",
        job=job,
        scope=scope,
        fingerprint=fingerprint,
        state=state,
        limit=limit,
        before=before or "~",
    )
    return [_build(row) for row in rows]


def history(tx: Transaction, build: Build) -> list[Snapshot]:
    """The runs that made it, the newest first, as far as they are kept."""
    made: list[Snapshot] = []
    run_id: str | None = build.run_id
    while run_id is not None and len(made) < HISTORY and (found := runs.find(tx, [run_id])):
        made += found
        run_id = made[-1].again_of
    return made


def uses(tx: Transaction, run_ids: Sequence[str]) -> Mapping[str, int]:
    """How many of the newest RECENT runs that needed anything needed each of these makings."""
    rows = tx.all("count_uses", ids=sorted(set(run_ids)), limit=RECENT) if run_ids else []
    return {row["run_id"]: row["uses"] for row in rows}


def invalidate(tx: Transaction, which: Which, *, because: str | None) -> Build:
    """No one gets what was made any more: the next who asks has it made anew. Runs that wait for it go on waiting."""
    if because is not None and not codec.storable(because):
        raise InvalidPolicy("because is text without NUL or half a character")
    build = get(tx, which)
    tx.run(
        "invalidate_build",
        job=build.job,
        scope=build.scope,
        fingerprint=build.fingerprint,
        run_id=build.run_id,
        because=because,
        now=tx.now,
    )
    return get(tx, build)


def rebuild(tx: Transaction, which: Which, *, allowed: Callable[[str, Policy], None]) -> str:
    """Make it anew, now; the new run. If someone else has just begun to, theirs.

    `allowed` raises if no one but the application may start runs of that job with that policy.
    """
    build = get(tx, which)
    row = tx.one("find_snapshots", ids=[build.run_id])
    if row is None:
        raise BuildNotFound(f"run {build.run_id}, which made {build.job} {build.scope}, is not kept any more: ask anew")
    old = runs.snapshot(row)
    if old.unreadable is not None:
        raise Unreadable(f"run {old.id} can't be run again: {old.unreadable}")
    allowed(old.job, old.policy)
    wish = Wish(
        job=build.job,
        scope=build.scope,
        fingerprint=build.fingerprint,
        queue=old.queue,
        priority=old.priority,
        args=row["args"],
        policy=old.policy,
        tags=row["tags"],
    )
    makings = wishes.replace(tx, [Making(wish, tx.new_id(), build.run_id)])
    if not makings:
        return get(tx, build).run_id
    runs.make(tx, makings)
    return makings[0].run_id


def _build(row: Row) -> Build:
    reading = codec.Reading(row)
    reading.column("result", codec.shown if row["result"] is None else codec.load, instead=str)
    return Build(**row, unreadable=reading.unreadable)


def _identity(tx: Transaction, which: Which) -> tuple[str, str, str]:
    if isinstance(which, Wish | Build):
        return which.job, which.scope, which.fingerprint
    run = runs.get(tx, which)
    if run.kind == "build":
        # All runs of one build share its key; one that was replaced is in no row of `builds`.
        fingerprint = run.args.get("fingerprint") if isinstance(run.args, dict) else None
        for row in tx.all("find_builds_of", job=run.job, fingerprint=fingerprint, run_id=run.id):
            if wishes.key_of(row["job"], row["scope"], row["fingerprint"]) == run.key:
                return row["job"], row["scope"], row["fingerprint"]
    raise BuildNotFound(f"run {which} ({run.job}) made no build that is known")
