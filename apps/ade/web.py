"""Web: the site of ade. `holdfast serve apps.ade.web:site --worker` serves it and executes its runs and builds."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from apps.ade.endpoints import builds, configurations, documents, runs, workspaces
from apps.ade.jobs import hf, set_queue_size
from holdfast.web import Site, Who

HERE = Path(__file__).parent

site = Site(
    hf,
    title="ade",
    templates=HERE / "templates",
    static=HERE / "static",
    links={
        "Runs": "ade.runs",
        "Documents": "ade.documents",
        "Configurations": "ade.configurations",
        "Builds": "ade.builds",
    },
    at="/holdfast",
)


def start(site: Site) -> APIRouter:
    pages = site.resource()

    @pages.get("/", include_in_schema=False)
    def redirect_to_runs(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return RedirectResponse(request.url_for("ade.runs").path, 303)

    return pages


site.on_start(set_queue_size)
for router in (start, workspaces.router, documents.router, configurations.router, builds.router, runs.router):
    site.include(router(site))
