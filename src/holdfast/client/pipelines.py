"""client.pipelines: the progress of pipelines, and reruns, as in `hf.pipelines`."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.client import decoding
from holdfast.client.decoding import pages
from holdfast.client.jobs import Handle
from holdfast.client.transport import Wire
from holdfast.runs.handle import Run, RunLike, id_of
from holdfast.support.validation import job_name
from holdfast.values.pipelines import PipelineInfo, Progress, Segment
from holdfast.values.runs import Snapshot

if TYPE_CHECKING:
    from holdfast.jobs.job import Job


class Pipelines:
    """The pipelines of a server. A pipeline is a run: cancel it with `client.cancel`."""

    def __init__(self, wire: Wire, handle: Handle) -> None:
        self._wire, self._handle = wire, handle

    def show(self, run: RunLike) -> PipelineInfo:
        """Return the state of each stage of a pipeline, or raise PipelineNotFound."""
        answer = self._wire.get("pipelines", id_of(run))
        return decoding.value(PipelineInfo, answer | {"run": decoding.snapshot(answer["run"])})

    def list(
        self,
        *,
        name: Job[..., Any] | str | None = None,
        state: str | None = None,
        limit: int = 50,
        before: RunLike | None = None,
    ) -> builtins.list[Snapshot]:
        """List pipelines, newest first. `before` is the last one of the previous page."""
        job = None if name is None else job_name(name)
        chosen = {"name": job, "state": state}
        found = pages(
            lambda last, most: decoding.page(dict, self._wire.get("pipelines", **chosen, before=last, limit=most)),
            limit=limit,
            first=None if before is None else id_of(before),
        )
        return [decoding.listed(self._wire, one["run"]) for one in found]

    def progress(self, pipelines: Sequence[Snapshot]) -> Mapping[str, Progress]:
        """Return for each pipeline, by run id, its number of stages, how many are done, and when the first started."""
        return {run.id: self.show(run.id).progress for run in pipelines if run.kind == "pipeline"}

    def segments(self, run: RunLike, stage: str, *, limit: int = 1000, after: str = "") -> builtins.list[Segment]:
        """List the segments of a split stage with their runs. `after` is the last name of the previous page."""
        path = ("pipelines", id_of(run), "stages", stage, "segments")
        return decoding.items(Segment, self._wire.get(*path, limit=limit, after=after))

    def rerun(self, run: RunLike, *, from_stage: str) -> Run[Any]:
        """Submit a new pipeline that starts at a stage and reuses the results of the stages before it.

        Raises StageNotDone if one of those stages is not DONE.
        """
        answer = self._wire.post("pipelines", id_of(run), "rerun", body={"from_stage": from_stage})
        return self._handle(decoding.snapshot(answer))
