"""hf.builds: what has been built, and how it is made anew."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from holdfast import builds
from holdfast.builds import Build, Which
from holdfast.errors import InvalidPolicy
from holdfast.handles import Run, RunLike, id_of
from holdfast.jobs import Job, job_name
from holdfast.options import check_limit
from holdfast.runs import Snapshot
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

    def invalidate(self, which: Which | RunLike, *, because: str | None = None) -> Build:
        """Call it stale: the next who asks for it has it made anew."""
        named = _named(which)
        return self._hf.do(lambda tx: builds.invalidate(tx, named, because=because))

    def rebuild(self, which: Which | RunLike) -> Run[Any]:
        """Make it anew, now; the new run. The earlier one stays in history."""
        named = _named(which)
        run_id = self._hf.do(lambda tx: builds.rebuild(tx, named))
        return self._hf.get(run_id)


def _named(which: Which | RunLike) -> Which:
    return which if isinstance(which, Wish | Build) else id_of(which)
