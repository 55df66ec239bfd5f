"""hf.pipelines: the progress of pipelines, and reruns."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.jobs.job import Job
from holdfast.pipelines import stages
from holdfast.pipelines.rerun import rerun_pipeline
from holdfast.runs import audit
from holdfast.runs.handle import Run, RunLike, id_of
from holdfast.runtime import Runtime
from holdfast.store.transaction import Transaction
from holdfast.support.validation import check_limit, job_name
from holdfast.values.pipelines import PipelineInfo, Progress, Segment
from holdfast.values.runs import Snapshot


class Pipelines:
    """The pipelines of one Holdfast. A pipeline is a run: cancel it with `hf.cancel`."""

    def __init__(self, runtime: Runtime, handle: Callable[[str], Run[Any]]) -> None:
        self._runtime, self._handle = runtime, handle

    def show(self, run: RunLike) -> PipelineInfo:
        """Return the state of each stage of a pipeline, or raise PipelineNotFound."""
        run_id = id_of(run)
        return self._runtime.read(lambda tx: stages.show(tx, run_id))

    def list(
        self,
        *,
        name: Job[..., Any] | str | None = None,
        state: str | None = None,
        limit: int = 50,
        before: RunLike | None = None,
    ) -> list[Snapshot]:
        """List pipelines, newest first. `before` is the last one of the previous page."""
        check_limit(limit)
        job, last = None if name is None else job_name(name), None if before is None else id_of(before)
        return self._runtime.read(lambda tx: stages.list_pipelines(tx, job=job, state=state, limit=limit, before=last))

    def progress(self, pipelines: Sequence[Snapshot]) -> Mapping[str, Progress]:
        """Return for each pipeline, by run id, its number of stages, how many are done, and when the first started."""
        runs = [run for run in pipelines if run.kind == "pipeline"]
        return self._runtime.read(lambda tx: stages.progress_of(tx, runs)) if runs else {}

    def segments(self, run: RunLike, stage: str, *, limit: int = 1000, after: str = "") -> builtins.list[Segment]:
        """List the segments of a split stage with their runs. `after` is the last name of the previous page.

        Shorter names come first, so numbered segments are in order.
        """
        check_limit(limit)
        run_id = id_of(run)
        return self._runtime.read(
            lambda tx: stages.list_segments(tx, stages.plan_of(tx, run_id), stage, limit=limit, after=after)
        )

    def rerun(self, run: RunLike, *, from_stage: str, by: str | None = None) -> Run[Any]:
        """Submit a new pipeline that starts at a stage and reuses the results of the stages before it.

        Raises StageNotDone if one of those stages is not DONE.
        """
        run_id = id_of(run)
        self._runtime.start()

        def rerun(tx: Transaction) -> str:
            new = rerun_pipeline(tx, run_id, from_stage=from_stage, allowed=self._runtime.jobs.require_open)
            audit.record(tx, by, "rerun", run_id=run_id, from_stage=from_stage, run=new)
            return new

        return self._handle(self._runtime.do(rerun))
