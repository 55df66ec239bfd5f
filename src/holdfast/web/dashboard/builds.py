"""/builds: what has been made once, for whom, and what that saved."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from holdfast.builds import builds as nouns
from holdfast.values.builds import STATES
from holdfast.values.pages import Page
from holdfast.web.auth.authentication import Who
from holdfast.web.dashboard.flash import acted, said

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
        asked = {name: value or None for name, value in chosen.items()}
        if asked["state"] not in STATES:
            asked["state"] = None
        found = hf.builds.list(**asked, limit=PAGE, before=before or None)
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
            said=said(request),
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
            said=said(request),
        )

    @pages.post("/builds/{run_id}/invalidate", name="holdfast.build.invalidate")
    def invalidate(
        request: Request,
        run_id: str,
        who: Annotated[Who, Depends(site.operator)],
        because: Annotated[str, Form(max_length=1000)] = "",
    ) -> Response:
        def do() -> str:
            found = hf.builds.invalidate(run_id, because=because.strip() or None, by=who.name)
            return f"Build {found.job} is stale: the next who asks for it has it made anew."

        return acted(request, request.url_for("holdfast.build", run_id=run_id).path, do)

    @pages.post("/builds/{run_id}/rebuild", name="holdfast.build.rebuild")
    def rebuild(request: Request, run_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        def do() -> str:
            return f"It is made anew by run {hf.builds.rebuild(run_id, by=who.name).id}."

        return acted(request, request.url_for("holdfast.build", run_id=run_id).path, do)

    return pages
