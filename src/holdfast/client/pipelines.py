"""client.pipelines: where pipelines stand, as `hf.pipelines` says it."""

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
    """The pipelines of a server; each is a run, and is cancelled as such."""

    def __init__(self, wire: Wire, handle: Handle) -> None:
        self._wire, self._handle = wire, handle

    def show(self, run: RunLike) -> PipelineInfo:
        """Where each stage of a pipeline stands, or PipelineNotFound."""
        said = self._wire.get("pipelines", id_of(run))
        return decoding.value(PipelineInfo, said | {"run": decoding.snapshot(said["run"])})

    def list(
        self,
        *,
        name: Job[..., Any] | str | None = None,
        state: str | None = None,
        limit: int = 50,
        before: RunLike | None = None,
    ) -> builtins.list[Snapshot]:
        """The newest pipelines first; `before` continues after the last one of the page before."""
        job = None if name is None else job_name(name)
        chosen = {"name": job, "state": state}
        found = pages(
            lambda last, most: decoding.page(dict, self._wire.get("pipelines", **chosen, before=last, limit=most)),
            limit=limit,
            first=None if before is None else id_of(before),
        )
        return [decoding.listed(self._wire, one["run"]) for one in found]

    def progress(self, pipelines: Sequence[Snapshot]) -> Mapping[str, Progress]:
        """How far these are, by their ids: stages, those that are done, and when the first one began."""
        found = [run.id for run in pipelines if run.kind == "pipeline"]
        return {run_id: self.show(run_id).progress for run_id in found}

    def segments(self, run: RunLike, stage: str, *, limit: int = 1000, after: str = "") -> builtins.list[Segment]:
        """The segments of a split stage, each with its run; `after` continues after the last of the page before."""
        path = ("pipelines", id_of(run), "stages", stage, "segments")
        return decoding.items(Segment, self._wire.get(*path, limit=limit, after=after))

    def rerun(self, run: RunLike, *, from_stage: str) -> Run[Any]:
        """A new pipeline that begins at a stage, with the results of the stages before it; they must be DONE."""
        said = self._wire.post("pipelines", id_of(run), "rerun", body={"from_stage": from_stage})
        return self._handle(decoding.snapshot(said))
