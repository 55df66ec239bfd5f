"""hf.builds: what has been built, and how it is made anew."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast import builds, operations
from holdfast.builds import Build, Which
from holdfast.errors import InvalidPolicy
from holdfast.handles import Run, RunLike, id_of
from holdfast.jobs import Job, job_name
from holdfast.options import check_limit
from holdfast.runs import Snapshot
from holdfast.store.transaction import Transaction
from holdfast.wishes import Wish

if TYPE_CHECKING:
    from holdfast.engine import Holdfast


class Builds:
    """The builds of one Holdfast.

    A build is named by a wish for it (`environment.of(…)`), by a Build that was read before, or by a run (or its
    id) that made it.
    """

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf

    def get(self, which: Which | RunLike) -> Build:
        """A build as it stands now, or BuildNotFound."""
        named = _named(which)
        return self._hf.read(lambda tx: builds.get(tx, named))

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
        if state is not None and state not in builds.STATES:
            raise InvalidPolicy(f"a build is {', '.join(builds.STATES)}; not {state!r}")
        check_limit(limit)
        name, last = None if job is None else job_name(job), None if before is None else id_of(before)
        chosen = {"job": name, "scope": scope, "fingerprint": fingerprint, "state": state, "before": last}
        return self._hf.read(lambda tx: builds.list_builds(tx, **chosen, limit=limit))

    def history(self, which: Which | RunLike) -> builtins.list[Snapshot]:
        """The runs that made it, the newest first."""
        named = _named(which)
        return self._hf.read(lambda tx: builds.history(tx, builds.get(tx, named)))

    def uses(self, found: Sequence[Build]) -> Mapping[str, int]:
        """How many runs needed each of these, by the run that made it; counted over the newest 5,000 that needed
        anything. A build that no one needs is not in it."""
        return self._hf.read(lambda tx: builds.uses(tx, [build.run_id for build in found]))

    def invalidate(self, which: Which | RunLike, *, because: str | None = None, by: str | None = None) -> Build:
        """Call it stale: the next who asks for it has it made anew."""
        named = _named(which)

        def invalidate(tx: Transaction) -> Build:
            build = builds.invalidate(tx, named, because=because)
            operations.record(tx, by, "invalidate", run_id=build.run_id, **_identity(build), because=because)
            return build

        return self._hf.do(invalidate)

    def rebuild(self, which: Which | RunLike, *, by: str | None = None) -> Run[Any]:
        """Make it anew, now; the new run. The earlier one stays in history."""
        named = _named(which)

        def rebuild(tx: Transaction) -> str:
            before = builds.get(tx, named)
            run_id = builds.rebuild(tx, before, allowed=self._hf.jobs.require_open)
            operations.record(tx, by, "rebuild", run_id=before.run_id, **_identity(before), run=run_id)
            return run_id

        return self._hf.get(self._hf.do(rebuild))


def _identity(build: Build) -> dict[str, str]:
    return {"job": build.job, "scope": build.scope, "fingerprint": build.fingerprint}


def _named(which: Which | RunLike) -> Which:
    return which if isinstance(which, Wish | Build) else id_of(which)
