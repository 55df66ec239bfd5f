"""/api/pipelines: where pipelines stand, stage by stage. A pipeline is a run, and is cancelled as such."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from holdfast.values.pipelines import Fate, PipelineInfo, StageState
from holdfast.web.api.shapes import USUAL, Ask, AskQuery, Limit, Name, Run, RunId, Shape, State
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


class Progress(Shape):
    """Of the stages that run for a pipeline: how many there are, and are done."""

    stages: int
    done: int
    begun_at: datetime | None


class Stage(Shape):
    """One stage of a pipeline; of a split one, its segments by their states."""

    name: str
    version: str
    run_id: str
    state: StageState
    ended: bool = Field(
        description="Whether that is for good: a stage in ERROR may still be tried again, a NEW one never starts."
    )
    after: list[str]
    split: bool
    reused: bool = Field(description="Its run belongs to the pipeline that this one repeats.")
    segments: Mapping[StageState, int]
    errors: Mapping[Fate, int] = Field(description="How many of its runs did not complete, by what became of them.")
    retry_at: datetime | None
    reason: str | None = Field(description="Why a NEW stage that has ended was skipped.")
    total: int
    done: int


class Trouble(Shape):
    """A run of the pipeline that failed, or failed and will be tried again."""

    run_id: str
    stage: str
    segment: str | None
    state: str
    retry_at: datetime | None
    error: str


class Pipeline(Shape):
    """A pipeline's run, its stages in the order in which they were declared, and the first runs that failed."""

    run: Run
    stages: list[Stage]
    progress: Progress
    troubles: list[Trouble]


class PipelineLine(Shape):
    run: Run
    progress: Progress | None


class Pipelines(Shape):
    pipelines: list[PipelineLine]
    next: str | None = Field(description="Go on by ?before=; null at the end.")


class Segment(Shape):
    """One segment of a split stage, and its run."""

    name: str
    run_id: str
    state: StageState
    fate: Fate | None = Field(description="What an ERROR is, or that a NEW one was skipped.")
    attempt: int
    retry_at: datetime | None
    reason: str | None = Field(description="Why it was skipped.")


class Segments(Shape):
    segments: list[Segment]
    next: str | None = Field(description="Go on by ?after=; null at the end.")


class PipelineQuery(AskQuery):
    name: Name | None = None
    state: State | None = None
    before: RunId | None = Field(default=None, description="Go on below this run: `next` of the page before.")
    limit: Limit = USUAL


class Rerun(Ask):
    from_stage: Name = Field(description="The first stage that is done anew.", examples=["render"])


def router(site: "Site") -> APIRouter:
    pipelines = site.resource("/pipelines", tags=["pipelines"])
    hf = site.hf

    @pipelines.get("", name="holdfast.api.pipelines", summary="Pipelines, the newest first")
    def list_pipelines(
        asked: Annotated[PipelineQuery, Query()], who: Annotated[Who, Depends(site.viewer)]
    ) -> Pipelines:
        """One that is under way is `queued`: its stages run, and its own run waits for them."""
        found = hf.pipelines.list(**asked.model_dump())
        far = hf.pipelines.progress(found)
        lines = [PipelineLine(run=Run.of(run, whole=False), progress=_progress(far, run.id)) for run in found]
        return Pipelines(pipelines=lines, next=found[-1].id if len(found) == asked.limit else None)

    @pipelines.get("/{run_id}", name="holdfast.api.pipeline", summary="A pipeline, stage by stage")
    def get_pipeline(run_id: RunId, who: Annotated[Who, Depends(site.viewer)]) -> Pipeline:
        """Counts, whatever the number of segments."""
        return _shape(hf.pipelines.show(run_id))

    @pipelines.get(
        "/{run_id}/stages/{stage}/segments", name="holdfast.api.segments", summary="The segments of a stage, in order"
    )
    def list_segments(
        run_id: RunId,
        stage: Name,
        who: Annotated[Who, Depends(site.viewer)],
        after: Annotated[str, Query(max_length=400, pattern=r"^[^\x00]*$")] = "",
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> Segments:
        """Shorter names come first, so that numbered ones are in order."""
        found = hf.pipelines.segments(run_id, stage, limit=limit, after=after)
        following = found[-1].name if len(found) == limit else None
        return Segments(segments=[Segment.model_validate(one) for one in found], next=following)

    @pipelines.post("/{run_id}/rerun", status_code=201, name="holdfast.api.rerun", summary="Again from a stage on")
    def rerun_pipeline(run_id: RunId, asked: Rerun, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """A new pipeline with the results of the stages before it. `POST /runs/{run_id}/again` does all of it again."""
        return Run.of(hf.pipelines.rerun(run_id, from_stage=asked.from_stage, by=who.name).snapshot)

    return pipelines


def _progress(far: Mapping[str, object], run_id: str) -> Progress | None:
    return Progress.model_validate(far[run_id]) if run_id in far else None


def _shape(info: PipelineInfo) -> Pipeline:
    return Pipeline(
        run=Run.of(info.run),
        stages=[Stage.model_validate(stage) for stage in info.stages],
        progress=Progress.model_validate(info.progress),
        troubles=[Trouble.model_validate(trouble) for trouble in info.troubles],
    )
