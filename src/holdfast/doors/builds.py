"""hf.builds: what has been built, and how it is made anew."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from holdfast import builds
from holdfast.builds import Build, Which
from holdfast.errors import InvalidPolicy
from holdfast.handles import Run
from holdfast.jobs import Job
from holdfast.runs import Snapshot

if TYPE_CHECKING:
    from holdfast.engine import Holdfast


class Builds:
    """The builds of one Holdfast.

    A build is named by a wish for it (`environment.of(…)`), by a Build that was read before, or by the id of a run that
    made it.
    """

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf

    def get(self, which: Which) -> Build:
        """A build as it stands now, or BuildNotFound."""
        return self._hf.read(lambda tx: builds.get(tx, which))

    def list(
        self,
        *,
        job: Job[..., Any] | str | None = None,
        scope: str | None = None,
        fingerprint: str | None = None,
        state: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> builtins.list[Build]:
        """The newest makings first; `before` continues after the run of the last one of the page before."""
        if state is not None and state not in builds.STATES:
            raise InvalidPolicy(f"a build is {', '.join(builds.STATES)}; not {state!r}")
        name = job.name if isinstance(job, Job) else job
        chosen = {"job": name, "scope": scope, "fingerprint": fingerprint, "state": state, "before": before}
        return self._hf.read(lambda tx: builds.list_builds(tx, **chosen, limit=limit))

    def history(self, which: Which) -> builtins.list[Snapshot]:
        """The runs that made it, the newest first."""
        return self._hf.read(lambda tx: builds.history(tx, builds.get(tx, which)))

    def invalidate(self, which: Which, *, because: str | None = None) -> Build:
        """Call it stale: the next who asks for it has it made anew."""
        return self._hf.do(lambda tx: builds.invalidate(tx, which, because=because))

    def rebuild(self, which: Which) -> Run[Any]:
        """Make it anew, now; the new run. The earlier one stays in history."""
        run_id = self._hf.do(lambda tx: builds.rebuild(tx, which))
        return self._hf.get(run_id)
