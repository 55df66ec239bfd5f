"""Builds: things built once per scope and fingerprint, and `hf.builds` to read, invalidate and rebuild them.

    queued ──▶ building ──▶ ready ──invalidate──▶ stale ──the next request──▶ queued
                        └─▶ failed | cancelled ───────────the next request──▶ queued

Each time a build is built, that is a run of its own; earlier runs stay in its history.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from holdfast.jobs.job import Job
from holdfast.runs import audit
from holdfast.runs.build_once import BuildRun, replace_builds
from holdfast.runs.handle import Run, RunLike, id_of
from holdfast.runs.snapshot import find_snapshots, get_snapshot, snapshot_of
from holdfast.runs.submit import submit_builds
from holdfast.runtime import Runtime
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.errors import BuildNotFound, InvalidPolicy, Unreadable
from holdfast.support.validation import check_limit, job_name
from holdfast.values.builds import STATES, Build, Wish, key_of
from holdfast.values.policies import Policy
from holdfast.values.runs import Snapshot


class Builds:
    """The builds of one Holdfast.

    A build is named by a wish for it (`environment.of(…)`), by a Build that was read before, or by a run (or its
    id) that made it.
    """

    def __init__(self, runtime: Runtime, handle: Callable[[str], Run[Any]]) -> None:
        self._runtime, self._handle = runtime, handle

    def get(self, which: Which | RunLike) -> Build:
        """A build as it stands now, or BuildNotFound."""
        named = _named(which)
        return self._runtime.read(lambda tx: get(tx, named))

    def list(
        self,
        *,
        job: Job[..., Any] | str | None = None,
        scope: str | None = None,
        fingerprint: str | None = None,
        state: str | None = None,
        limit: int = 50,
        before: RunLike | None = None,
    ) -> builtins.list[Build]:
        """The newest makings first; `before` continues after the run of the last one of the page before."""
        if state is not None and state not in STATES:
            raise InvalidPolicy(f"a build is {', '.join(STATES)}; not {state!r}")
        check_limit(limit)
        name, last = None if job is None else job_name(job), "~" if before is None else id_of(before)
        chosen = {"job": name, "scope": scope, "fingerprint": fingerprint, "state": state, "before": last}
        return self._runtime.read(lambda tx: [_build(row) for row in tx.all("list_builds", **chosen, limit=limit)])

    def history(self, which: Which | RunLike) -> builtins.list[Snapshot]:
        """The runs that made it, the newest first."""
        named = _named(which)
        return self._runtime.read(lambda tx: history(tx, get(tx, named)))

    def uses(self, found: Sequence[Build]) -> Mapping[str, int]:
        """How many runs needed each of these, by the run that made it; counted over the newest 5,000 that needed
        anything. A build that no one needs is not in it."""
        return self._runtime.read(lambda tx: uses(tx, [build.run_id for build in found]))

    def invalidate(self, which: Which | RunLike, *, because: str | None = None, by: str | None = None) -> Build:
        """Call it stale: the next who asks for it has it made anew."""
        named = _named(which)

        def invalidate(tx: Transaction) -> Build:
            build = invalidate_build(tx, named, because=because)
            audit.record(tx, by, "invalidate", run_id=build.run_id, **_identity_fields(build), because=because)
            return build

        return self._runtime.do(invalidate)

    def rebuild(self, which: Which | RunLike, *, by: str | None = None) -> Run[Any]:
        """Make it anew, now; the new run. The earlier one stays in history."""
        named = _named(which)

        def rebuild(tx: Transaction) -> str:
            before = get(tx, named)
            run_id = rebuild_now(tx, before, allowed=self._runtime.jobs.require_open)
            audit.record(tx, by, "rebuild", run_id=before.run_id, **_identity_fields(before), run=run_id)
            return run_id

        return self._handle(self._runtime.do(rebuild))


HISTORY = 100
RECENT = 5_000
"""So many of the newest runs that needed anything are looked at when uses are counted."""


Which: TypeAlias = Wish | Build | str
"""A build: by a wish for it, by itself as read before, or by the id of a run that made it, now or earlier."""


def get(tx: Transaction, which: Which) -> Build:
    """The build as it stands now, or BuildNotFound."""
    job, scope, fingerprint = _identity(tx, which)
    row = tx.one("get_build", job=job, scope=scope, fingerprint=fingerprint)
    if row is None:
        raise BuildNotFound(f"no one has asked for build {job} {scope} {fingerprint}")
    return _build(row)


def history(tx: Transaction, build: Build) -> list[Snapshot]:
    """The runs that made it, the newest first, as far as they are kept."""
    made: list[Snapshot] = []
    run_id: str | None = build.run_id
    while run_id is not None and len(made) < HISTORY and (found := find_snapshots(tx, [run_id])):
        made += found
        run_id = made[-1].again_of
    return made


def uses(tx: Transaction, run_ids: Sequence[str]) -> Mapping[str, int]:
    """How many of the newest RECENT runs that needed anything needed each of these makings."""
    rows = tx.all("count_uses", ids=sorted(set(run_ids)), limit=RECENT) if run_ids else []
    return {row["run_id"]: row["uses"] for row in rows}


def invalidate_build(tx: Transaction, which: Which, *, because: str | None) -> Build:
    """No one gets what was made any more: the next who asks has it made anew. Runs that wait for it go on waiting."""
    if because is not None and not json_text.storable(because):
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


def rebuild_now(tx: Transaction, which: Which, *, allowed: Callable[[str, Policy], None]) -> str:
    """Make it anew, now; the new run. If someone else has just begun to, theirs.

    `allowed` raises if no one but the application may start runs of that job with that policy.
    """
    build = get(tx, which)
    row = tx.one("find_snapshots", ids=[build.run_id])
    if row is None:
        raise BuildNotFound(f"run {build.run_id}, which made {build.job} {build.scope}, is not kept any more: ask anew")
    old = snapshot_of(row)
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
    makings = replace_builds(tx, [BuildRun(wish, tx.new_id(), build.run_id)])
    if not makings:
        return get(tx, build).run_id
    submit_builds(tx, makings)
    return makings[0].run_id


def _build(row: Row) -> Build:
    reading = json_text.Reading(row)
    reading.column("result", json_text.shown if row["result"] is None else json_text.load, instead=str)
    return Build(**row, unreadable=reading.unreadable)


def _identity(tx: Transaction, which: Which) -> tuple[str, str, str]:
    if isinstance(which, Wish | Build):
        return which.job, which.scope, which.fingerprint
    run = get_snapshot(tx, which)
    if run.kind == "build":
        # All runs of one build share its key; one that was replaced is in no row of `builds`.
        fingerprint = run.args.get("fingerprint") if isinstance(run.args, dict) else None
        for row in tx.all("find_builds_of", job=run.job, fingerprint=fingerprint, run_id=run.id):
            if key_of(row["job"], row["scope"], row["fingerprint"]) == run.key:
                return row["job"], row["scope"], row["fingerprint"]
    raise BuildNotFound(f"run {which} ({run.job}) made no build that is known")


def _identity_fields(build: Build) -> dict[str, str]:
    return {"job": build.job, "scope": build.scope, "fingerprint": build.fingerprint}


def _named(which: Which | RunLike) -> Which:
    return which if isinstance(which, Wish | Build) else id_of(which)
