"""/api/pipelines: where pipelines stand, stage by stage. A pipeline is a run, and is cancelled as such."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from holdfast.values.pages import Page
from holdfast.values.pipelines import Progress, Segment, StageInfo, Trouble
from holdfast.web.api.shapes import USUAL, Ask, AskQuery, Limit, Name, Run, RunId, Shape, State
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


class Pipeline(Shape):
    """A pipeline's run, its stages in the order in which they were declared, and the first runs that failed."""

    run: Run
    stages: tuple[StageInfo, ...]
    progress: Progress
    troubles: tuple[Trouble, ...]


class PipelineLine(Shape):
    run: Run
    progress: Progress | None


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
    ) -> Page[PipelineLine]:
        """One that is under way is `queued`: its stages run, and its own run waits for them. Go on by ?before=."""
        found = hf.pipelines.list(**asked.model_dump())
        far = hf.pipelines.progress(found)
        lines = [PipelineLine(run=Run.of(run, whole=False), progress=far.get(run.id)) for run in found]
        return Page.of(lines, limit=asked.limit, cursor=lambda line: line.run.id)

    @pipelines.get("/{run_id}", name="holdfast.api.pipeline", summary="A pipeline, stage by stage")
    def get_pipeline(run_id: RunId, who: Annotated[Who, Depends(site.viewer)]) -> Pipeline:
        """Counts, whatever the number of segments."""
        info = hf.pipelines.show(run_id)
        return Pipeline(run=Run.of(info.run), stages=info.stages, progress=info.progress, troubles=info.troubles)

    @pipelines.get(
        "/{run_id}/stages/{stage}/segments", name="holdfast.api.segments", summary="The segments of a stage, in order"
    )
    def list_segments(
        run_id: RunId,
        stage: Name,
        who: Annotated[Who, Depends(site.viewer)],
        after: Annotated[str, Query(max_length=400, pattern=r"^[^\x00]*$")] = "",
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> Page[Segment]:
        """Shorter names come first, so that numbered ones are in order. Go on by ?after=."""
        found = hf.pipelines.segments(run_id, stage, limit=limit, after=after)
        return Page.of(found, limit=limit, cursor=lambda segment: segment.name)

    @pipelines.post("/{run_id}/rerun", status_code=201, name="holdfast.api.rerun", summary="Again from a stage on")
    def rerun_pipeline(run_id: RunId, asked: Rerun, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """A new pipeline with the results of the stages before it. `POST /runs/{run_id}/again` does all of it again."""
        return Run.of(hf.pipelines.rerun(run_id, from_stage=asked.from_stage, by=who.name).snapshot)

    return pipelines
