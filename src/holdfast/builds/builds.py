"""Builds: work done once per scope and fingerprint, and `hf.builds` to read, invalidate and rebuild it.

    queued ──▶ building ──▶ ready ──invalidate──▶ stale ──the next request──▶ queued
                        └─▶ failed | cancelled ───────────the next request──▶ queued

Each build or rebuild is a new run; earlier runs stay in the build's history.
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
from holdfast.support.errors import BuildNotFound, InvalidPolicy, RunNotFound, Unreadable
from holdfast.support.validation import check_limit, job_name
from holdfast.values.builds import STATES, Build, BuildRequest, key_of
from holdfast.values.policies import Policy
from holdfast.values.runs import Snapshot


class Builds:
    """The builds of one Holdfast.

    The methods take a build as a request for it (`environment.request(…)`), as a Build, or as a run (or run id) that
    built it.
    """

    def __init__(self, runtime: Runtime, handle: Callable[[str], Run[Any]]) -> None:
        self._runtime, self._handle = runtime, handle

    def get(self, which: Which | RunLike) -> Build:
        """Return the current state of a build, or raise BuildNotFound."""
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
        """List builds, those with the newest runs first. `before` is the run of the last build of the previous page."""
        if state is not None and state not in STATES:
            raise InvalidPolicy(f"the state of a build must be one of {', '.join(STATES)}, not {state!r}")
        check_limit(limit)
        name, last = None if job is None else job_name(job), "~" if before is None else id_of(before)
        chosen = {"job": name, "scope": scope, "fingerprint": fingerprint, "state": state, "before": last}
        return self._runtime.read(lambda tx: [_build(row) for row in tx.all("list_builds", **chosen, limit=limit)])

    def history(self, which: Which | RunLike) -> builtins.list[Snapshot]:
        """Return the runs that built a build, newest first."""
        named = _named(which)
        return self._runtime.read(lambda tx: history(tx, get(tx, named)))

    def uses(self, found: Sequence[Build]) -> Mapping[str, int]:
        """Count the runs that depend on each build, by the id of the build's run.

        It examines only the newest 5,000 runs with dependencies. A build that no run depends on is left out.
        """
        return self._runtime.read(lambda tx: uses(tx, [build.run_id for build in found]))

    def invalidate(self, which: Which | RunLike, *, reason: str | None = None, by: str | None = None) -> Build:
        """Mark a build as stale, so that the next request rebuilds it."""
        named = _named(which)

        def invalidate(tx: Transaction) -> Build:
            build = invalidate_build(tx, named, reason=reason)
            audit.record(tx, by, "invalidate", run_id=build.run_id, **_identity_fields(build), reason=reason)
            return build

        return self._runtime.do(invalidate)

    def rebuild(self, which: Which | RunLike, *, by: str | None = None) -> Run[Any]:
        """Rebuild a build now, and return the new run. The earlier run stays in the history."""
        named = _named(which)

        def rebuild(tx: Transaction) -> str:
            before = get(tx, named)
            run_id = rebuild_now(tx, before, allowed=self._runtime.jobs.require_open)
            audit.record(tx, by, "rebuild", run_id=before.run_id, **_identity_fields(before), run=run_id)
            return run_id

        return self._handle(self._runtime.do(rebuild))


HISTORY = 100
RECENT = 5_000
"""How many of the newest runs with dependencies are read to count uses."""


Which: TypeAlias = BuildRequest | Build | str
"""A build: a request for it, a Build, or the id of its current run or of an earlier one."""


def get(tx: Transaction, which: Which) -> Build:
    """Return the current state of a build, or raise BuildNotFound."""
    job, scope, fingerprint = _identity(tx, which)
    row = tx.one("get_build", job=job, scope=scope, fingerprint=fingerprint)
    if row is None:
        raise BuildNotFound(f"there is no build {job} {scope} {fingerprint}; it was never requested, or was pruned")
    return _build(row)


def history(tx: Transaction, build: Build) -> list[Snapshot]:
    """Return the runs that built this build, newest first. It stops at the first run that has been pruned."""
    runs: list[Snapshot] = []
    run_id: str | None = build.run_id
    while run_id is not None and len(runs) < HISTORY and (run := find_snapshots(tx, [run_id])):
        runs += run
        run_id = runs[-1].again_of
    return runs


def uses(tx: Transaction, run_ids: Sequence[str]) -> Mapping[str, int]:
    """Count how many of the newest RECENT runs with dependencies depend on each of these runs."""
    rows = tx.all("count_uses", ids=sorted(set(run_ids)), limit=RECENT) if run_ids else []
    return {row["run_id"]: row["uses"] for row in rows}


def invalidate_build(tx: Transaction, which: Which, *, reason: str | None) -> Build:
    """Mark a build as stale, so that the next request rebuilds it. Runs that wait for it keep waiting."""
    if reason is not None and not json_text.storable(reason):
        raise InvalidPolicy("reason must not contain NUL or unpaired surrogates")
    build = get(tx, which)
    tx.run(
        "invalidate_build",
        job=build.job,
        scope=build.scope,
        fingerprint=build.fingerprint,
        run_id=build.run_id,
        reason=reason,
        now=tx.now,
    )
    return get(tx, build)


def rebuild_now(tx: Transaction, which: Which, *, allowed: Callable[[str, Policy], None]) -> str:
    """Rebuild a build now, and return the new run. If another process has just started a rebuild, return that run.

    `allowed` raises if only the application's code may start runs of this job.
    """
    build = get(tx, which)
    row = tx.one("find_snapshots", ids=[build.run_id])
    if row is None:
        raise BuildNotFound(
            f"run {build.run_id}, which built {build.job} {build.scope}, has been pruned; request the build again"
        )
    old = snapshot_of(row)
    if old.unreadable is not None:
        raise Unreadable(f"run {old.id} can't be run again: {old.unreadable}")
    allowed(old.job, old.policy)
    request = BuildRequest(
        job=build.job,
        scope=build.scope,
        fingerprint=build.fingerprint,
        queue=old.queue,
        priority=old.priority,
        args=row["args"],
        policy=old.policy,
        tags=row["tags"],
    )
    build_runs = replace_builds(tx, [BuildRun(request, tx.new_id(), build.run_id)])
    if not build_runs:
        return get(tx, build).run_id
    submit_builds(tx, build_runs)
    return build_runs[0].run_id


def _build(row: Row) -> Build:
    reading = json_text.Reading(row)
    reading.column("result", json_text.shown if row["result"] is None else json_text.load, instead=str)
    return Build(**row, unreadable=reading.unreadable)


def _identity(tx: Transaction, which: Which) -> tuple[str, str, str]:
    if isinstance(which, BuildRequest | Build):
        return which.job, which.scope, which.fingerprint
    try:
        run = get_snapshot(tx, which)
    except RunNotFound as error:
        raise BuildNotFound(f"there is no build {which}") from error
    if run.kind == "build":
        # All runs of one build have the same key. A run that was replaced is not in the table of builds.
        fingerprint = run.args.get("fingerprint") if isinstance(run.args, dict) else None
        for row in tx.all("find_builds_of", job=run.job, fingerprint=fingerprint, run_id=run.id):
            if key_of(row["job"], row["scope"], row["fingerprint"]) == run.key:
                return row["job"], row["scope"], row["fingerprint"]
    raise BuildNotFound(f"run {which} ({run.job}) does not belong to a known build")


def _identity_fields(build: Build) -> dict[str, str]:
    return {"job": build.job, "scope": build.scope, "fingerprint": build.fingerprint}


def _named(which: Which | RunLike) -> Which:
    return which if isinstance(which, BuildRequest | Build) else id_of(which)
