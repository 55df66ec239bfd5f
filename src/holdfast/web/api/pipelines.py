"""/api/pipelines: list, show and rerun pipelines. A pipeline is a run and is cancelled like one."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from holdfast.values.pages import Page
from holdfast.values.pipelines import Progress, Segment, StageFailure, StageInfo
from holdfast.web.api.shapes import USUAL, Limit, Name, QueryModel, RequestBody, Run, RunId, Shape, State
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


class Pipeline(Shape):
    """The run of a pipeline, its stages in the order of their declaration, and its first failures."""

    run: Run
    stages: tuple[StageInfo, ...]
    progress: Progress
    failures: tuple[StageFailure, ...]


class PipelineLine(Shape):
    run: Run
    progress: Progress | None


class PipelineQuery(QueryModel):
    name: Name | None = None
    state: State | None = None
    before: RunId | None = Field(default=None, description="`next` of the previous page.")
    limit: Limit = USUAL


class Rerun(RequestBody):
    from_stage: Name = Field(description="The first stage to run again.", examples=["render"])


def router(site: "Site") -> APIRouter:
    pipelines = site.resource("/pipelines", tags=["pipelines"])
    hf = site.hf

    @pipelines.get("", name="holdfast.api.pipelines", summary="List pipelines, the newest first")
    def list_pipelines(
        query: Annotated[PipelineQuery, Query()], who: Annotated[Who, Depends(site.viewer)]
    ) -> Page[PipelineLine]:
        """A pipeline that is under way has the state `queued`, because its own run waits while its stages run. Pass
        `next` as `?before=` for the next page."""
        found = hf.pipelines.list(**query.model_dump())
        progress = hf.pipelines.progress(found)
        lines = [PipelineLine(run=Run.of(run, whole=False), progress=progress.get(run.id)) for run in found]
        return Page.of(lines, limit=query.limit, cursor=lambda line: line.run.id)

    @pipelines.get("/{run_id}", name="holdfast.api.pipeline", summary="Get a pipeline with its stages")
    def get_pipeline(run_id: RunId, who: Annotated[Who, Depends(site.viewer)]) -> Pipeline:
        """Segments are only counted here, so the response stays small."""
        info = hf.pipelines.show(run_id)
        return Pipeline(run=Run.of(info.run), stages=info.stages, progress=info.progress, failures=info.failures)

    @pipelines.get(
        "/{run_id}/stages/{stage}/segments", name="holdfast.api.segments", summary="List the segments of a stage"
    )
    def list_segments(
        run_id: RunId,
        stage: Name,
        who: Annotated[Who, Depends(site.viewer)],
        after: Annotated[str, Query(max_length=400, pattern=r"^[^\x00]*$")] = "",
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> Page[Segment]:
        """Shorter names come first, so that numbered segments are in order. Pass `next` as `?after=` for more."""
        found = hf.pipelines.segments(run_id, stage, limit=limit, after=after)
        return Page.of(found, limit=limit, cursor=lambda segment: segment.name)

    @pipelines.post(
        "/{run_id}/rerun", status_code=201, name="holdfast.api.rerun", summary="Rerun a pipeline from a stage"
    )
    def rerun_pipeline(run_id: RunId, body: Rerun, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """Starts a new pipeline that reuses the results of the earlier stages. `POST /runs/{run_id}/again` repeats all
        stages."""
        return Run.of(hf.pipelines.rerun(run_id, from_stage=body.from_stage, by=who.name).snapshot)

    return pipelines
