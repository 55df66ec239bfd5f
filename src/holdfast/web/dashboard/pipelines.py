"""/pipelines: the list of pipelines, and the page of one with its graph, segments and failures."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from holdfast.values.filters import STATES
from holdfast.values.pages import Page
from holdfast.values.pipelines import PipelineInfo, StageInfo
from holdfast.web.auth.authentication import Who
from holdfast.web.dashboard.flash import Redirect, act, flash
from holdfast.web.dashboard.pipeline_graph import layout

if TYPE_CHECKING:
    from holdfast.web.site import Site

PAGE, CELLS = 50, 1000
Text = Annotated[str, Query(max_length=400)]


def router(site: "Site") -> APIRouter:
    pages = site.resource()
    hf = site.hf

    @pages.get("/pipelines", name="holdfast.pipelines")
    def pipelines(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        name: Text = "",
        state: Text = "",
        before: Text = "",
    ) -> Response:
        chosen = {"name": name.strip(), "state": state if state in STATES else ""}
        filters = {one: value or None for one, value in chosen.items()}
        found = hf.pipelines.list(**filters, limit=PAGE, before=before or None)
        return site.render(
            request,
            who,
            "pipelines.html",
            pipelines=found,
            progress=hf.pipelines.progress(found),
            states=STATES,
            chosen=chosen,
            more=Page.of(found, limit=PAGE, cursor=lambda run: run.id).next,
        )

    @pages.get("/pipelines/{run_id}", name="holdfast.pipeline")
    def pipeline(
        request: Request,
        run_id: str,
        who: Annotated[Who, Depends(site.viewer)],
        stage: Annotated[str, Query(max_length=200)] = "",
        after: Annotated[str, Query(max_length=2000)] = "",
    ) -> Response:
        info = hf.pipelines.show(run_id)
        shown = _chosen(info, stage)
        cells = hf.pipelines.segments(run_id, shown.name, limit=CELLS, after=after) if shown else []
        return site.render(
            request,
            who,
            "pipeline.html",
            info=info,
            run=info.run,
            refusal=hf.jobs.refusal(info.run.job, info.run.policy),
            picture=layout(info.stages),
            shown=shown,
            cells=cells,
            after=after,
            more=Page.of(cells, limit=CELLS, cursor=lambda segment: segment.name).next,
            flash=flash(request),
        )

    @pages.post("/pipelines/{run_id}/cancel", name="holdfast.pipeline.cancel")
    def cancel(
        request: Request,
        run_id: str,
        who: Annotated[Who, Depends(site.operator)],
        reason: Annotated[str, Form(max_length=1000)] = "",
    ) -> Response:
        def do() -> str:
            state = hf.cancel(run_id, reason=reason.strip() or "cancelled", by=who.name)
            return "Cancellation requested." if state == "running" else f"The pipeline is {state}."

        return act(request, request.url_for("holdfast.pipeline", run_id=run_id).path, do)

    @pages.post("/pipelines/{run_id}/rerun", name="holdfast.pipeline.rerun")
    def rerun(
        request: Request,
        run_id: str,
        who: Annotated[Who, Depends(site.operator)],
        from_stage: Annotated[str, Form(max_length=200)] = "",
    ) -> Response:
        def do() -> Redirect:
            if from_stage:
                run = hf.pipelines.rerun(run_id, from_stage=from_stage, by=who.name)
                message = f"This is the new pipeline. It starts at stage {from_stage}."
            else:
                run, message = hf.again(run_id, by=who.name), "This is the new pipeline. It runs all stages again."
            return Redirect(message, request.url_for("holdfast.pipeline", run_id=run.id).path)

        return act(request, request.url_for("holdfast.pipeline", run_id=run_id).path, do)

    return pages


def _chosen(info: PipelineInfo, name: str) -> StageInfo | None:
    """Return the split stage whose segments are shown: the named one, or the first that is under way."""
    split = [stage for stage in info.stages if stage.split]
    named = [stage for stage in split if stage.name == name]
    under_way = [stage for stage in split if stage.total and not stage.ended]
    return next(iter([*named, *under_way, *[stage for stage in split if stage.total], *split]), None)
