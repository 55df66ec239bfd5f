"""/builds: the environments of configurations, each built once."""
# No `from __future__ import annotations` here: FastAPI could not resolve `site`, which the annotations use.

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from apps.ade import jobs, runs
from apps.ade.endpoints import schemas
from apps.ade.endpoints.schemas import DEFAULT_LIMIT, STREAM, Build, Builds, Id, Limit
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
        limit: Limit = DEFAULT_LIMIT,
    ) -> Any:
        with database.read() as session:
            builds = runs.builds(session, configuration_id, limit=limit)
            if not wants_page(request):
                return Builds(builds=[schemas.build(request, each) for each in builds])
            names = {
                row.id: row.name for each in builds if (row := session.get(Configuration, each.row.configuration_id))
            }
        return site.render(request, who, "ade_builds.html", builds=builds, names=names, reason=runs.reason)

    @pages.get("/builds/{build_id}", name="ade.build", response_model=Build, summary="One build")
    def get_build(request: Request, build_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Any:
        view = _get(build_id)
        if not wants_page(request):
            return schemas.build(request, view)
        with database.read() as session:
            configuration = session.get_one(Configuration, view.row.configuration_id)
        log = hf.logs(view.run_id, limit=LINES).records if view.run_id else ()
        return site.render(
            request, who, "ade_build.html", build=view, configuration=configuration, log=log, reason=runs.reason
        )

    @pages.post("/builds/{build_id}/cancel", name="ade.cancel_build", response_model=Build, summary="Cancel a build")
    def cancel_build(request: Request, build_id: Id, who: Annotated[Who, Depends(site.operator)]) -> Any:
        """Cancels a build, so that the runs waiting for it fail. A build that has already ended is not changed."""
        row = _get(build_id).row
        jobs.cancel_build(row.id, row.configuration_id, row.version, row.fingerprint, by=who.name)
        if wants_page(request):
            return RedirectResponse(request.url_for("ade.build", build_id=build_id).path, 303)
        return schemas.build(request, _get(build_id))

    @pages.get(
        "/builds/{build_id}/events",
        name="ade.build_events",
        response_class=Response,
        responses=STREAM,
        summary="Stream the build's log",
    )
    async def stream_build(request: Request, build_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Streams the log of the latest execution of the build. Streaming never starts work."""
        run_id = (await run_in_threadpool(_get, build_id)).run_id
        if run_id is None:
            raise Problem("build_not_started", "the build has not been queued yet; ask again in a moment", status=409)
        return await site.streams.run(request, run_id)

    return pages


def _get(build_id: str) -> BuildView:
    with database.read() as session:
        view = runs.view_build(session, build_id)
    if view is None:
        raise Problem("build_not_found", f"there is no build {build_id}", status=404)
    return view
