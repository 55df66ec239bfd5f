"""hf.pipelines: where pipelines stand, and how they are done again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast import reruns, stages
from holdfast.handles import Run
from holdfast.runs import Snapshot
from holdfast.stages import PipelineInfo

if TYPE_CHECKING:
    from holdfast.engine import Holdfast


class Pipelines:
    """The pipelines of one Holdfast; each is a run, and is cancelled as such."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf

    def show(self, run_id: str) -> PipelineInfo:
        """Where each stage of a pipeline stands, or PipelineNotFound."""
        return self._hf.read(lambda tx: stages.show(tx, run_id))

    def list(
        self, *, name: str | None = None, state: str | None = None, limit: int = 50, before: str | None = None
    ) -> list[Snapshot]:
        """The newest pipelines first; `before` continues after the last id of the page before."""
        return self._hf.read(lambda tx: stages.list_pipelines(tx, job=name, state=state, limit=limit, before=before))

    def rerun(self, run_id: str, *, from_stage: str) -> Run[Any]:
        """A new pipeline that begins at a stage, with the results of the stages before it; they must be DONE."""
        self._hf.start()
        return self._hf.get(self._hf.do(lambda tx: reruns.rerun(tx, run_id, from_stage=from_stage)))
