"""/builds: environments, each made once."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from apps.ade import jobs, runs
from apps.ade.endpoints import schemas
from apps.ade.endpoints.schemas import STREAM, USUAL, Build, Builds, Id, Limit
from apps.ade.jobs import database, hf
from apps.ade.runs import BuildView
from apps.ade.tables import Configuration
from holdfast.web import Problem, Site, Who, wants_page

LINES = 500


def router(site: Site) -> APIRouter:
    pages = site.resource(tags=["builds"])

    @pages.get("/builds", name="ade.builds", response_model=Builds, summary="The newest builds")
    def list_builds(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        configuration_id: Id | None = None,
        limit: Limit = USUAL,
    ) -> Any:
        with database.read() as session:
            found = runs.builds(session, configuration_id, limit=limit)
            if not wants_page(request):
                return Builds(builds=[schemas.build(request, each) for each in found])
            names = {
                row.id: row.name for each in found if (row := session.get(Configuration, each.row.configuration_id))
            }
        return site.render(request, who, "ade_builds.html", builds=found, names=names, reason=runs.reason)

    @pages.get("/builds/{build_id}", name="ade.build", response_model=Build, summary="One build")
    def get_build(request: Request, build_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Any:
        view = _found(build_id)
        if not wants_page(request):
            return schemas.build(request, view)
        with database.read() as session:
            configuration = session.get_one(Configuration, view.row.configuration_id)
        log = hf.logs(view.making, limit=LINES).records if view.making else ()
        return site.render(
            request, who, "ade_build.html", build=view, configuration=configuration, log=log, reason=runs.reason
        )

    @pages.post("/builds/{build_id}/cancel", name="ade.cancel_build", response_model=Build, summary="Stop a build")
    def cancel_build(request: Request, build_id: Id, who: Annotated[Who, Depends(site.operator)]) -> Any:
        """Runs that wait for it fail. One that has ended stays as it is."""
        row = _found(build_id).row
        jobs.cancel_build(row.id, row.configuration_id, row.version, row.fingerprint, by=who.name)
        if wants_page(request):
            return RedirectResponse(request.url_for("ade.build", build_id=build_id).path, 303)
        return schemas.build(request, _found(build_id))

    @pages.get(
        "/builds/{build_id}/events",
        name="ade.build_events",
        response_class=Response,
        responses=STREAM,
        summary="Its log, live",
    )
    async def stream_build(request: Request, build_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Of its newest making. A stream only looks: it starts nothing."""
        making = (await run_in_threadpool(_found, build_id)).making
        if making is None:
            raise Problem("build_not_started", "no one has begun to make it: ask again in a moment", status=409)
        return await site.streams.run(request, making)

    return pages


def _found(build_id: str) -> BuildView:
    with database.read() as session:
        view = runs.view_build(session, build_id)
    if view is None:
        raise Problem("build_not_found", f"there is no build {build_id}", status=404)
    return view
