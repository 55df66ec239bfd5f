"""/builds: the list of builds, and the page of one build."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from holdfast.builds import builds as nouns
from holdfast.values.builds import STATES
from holdfast.values.pages import Page
from holdfast.web.auth.authentication import Who
from holdfast.web.dashboard.flash import act, flash

if TYPE_CHECKING:
    from holdfast.web.site import Site

PAGE = 50
Text = Annotated[str, Query(max_length=400)]


def router(site: "Site") -> APIRouter:
    pages = site.resource()
    hf = site.hf

    @pages.get("/builds", name="holdfast.builds")
    def builds(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        state: Text = "",
        job: Text = "",
        scope: Text = "",
        before: Text = "",
    ) -> Response:
        chosen = {"state": state, "job": job.strip(), "scope": scope.strip()}
        filters = {name: value or None for name, value in chosen.items()}
        if filters["state"] not in STATES:
            filters["state"] = None
        found = hf.builds.list(**filters, limit=PAGE, before=before or None)
        return site.render(
            request,
            who,
            "builds.html",
            builds=found,
            uses=hf.builds.uses(found),
            recent=nouns.RECENT,
            states=STATES,
            chosen=chosen,
            more=Page.of(found, limit=PAGE, cursor=lambda build: build.run_id).next,
            flash=flash(request),
        )

    @pages.get("/builds/{run_id}", name="holdfast.build")
    def build(request: Request, run_id: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        found = hf.builds.get(run_id)
        history = hf.builds.history(found)
        uses = hf.builds.uses([found]).get(found.run_id, 0)
        return site.render(
            request,
            who,
            "build.html",
            build=found,
            refusal=hf.jobs.refusal(found.job, history[0].policy if history else None),
            history=history,
            uses=uses,
            recent=nouns.RECENT,
            flash=flash(request),
        )

    @pages.post("/builds/{run_id}/invalidate", name="holdfast.build.invalidate")
    def invalidate(
        request: Request,
        run_id: str,
        who: Annotated[Who, Depends(site.operator)],
        reason: Annotated[str, Form(max_length=1000)] = "",
    ) -> Response:
        def do() -> str:
            found = hf.builds.invalidate(run_id, reason=reason.strip() or None, by=who.name)
            return f"Build {found.job} is stale: the next run that requests it rebuilds it."

        return act(request, request.url_for("holdfast.build", run_id=run_id).path, do)

    @pages.post("/builds/{run_id}/rebuild", name="holdfast.build.rebuild")
    def rebuild(request: Request, run_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        def do() -> str:
            return f"Rebuilding in run {hf.builds.rebuild(run_id, by=who.name).id}."

        return act(request, request.url_for("holdfast.build", run_id=run_id).path, do)

    return pages
