"""/start: every application of the tree, what it shows, how it stands, and the way to it."""
# No postponed annotations: FastAPI could not see the `site` that the endpoint closes over.

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request, Response

from apps import registry
from apps.application import Application
from apps.system import board
from apps.system.board import Standing
from holdfast.web import Site, Who

LATELY = timedelta(seconds=30)


def router(site: Site, file: Path) -> APIRouter:
    pages = site.resource()

    @pages.get("/start", name="system.start")
    def start(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return site.render(request, who, "start.html", standings=[_shown(site, one) for one in board.read(file)])

    return pages


def _shown(site: Site, standing: Standing) -> dict[str, Any]:
    """An application as the page shows it: 'working' instead of 'up' where its work goes through."""
    application = registry.find(standing.name)
    working = standing.state == "up" and _works(site, application)
    runs = f"runs?{urlencode({'queue': application.queues[0]})}" if application.queues else "runs"
    shown = {"state": "working" if working else standing.state, "runs": runs, "sights": application.sights}
    return asdict(standing) | shown


def _works(site: Site, application: Application) -> bool:
    """Whether something of it runs, waits or was submitted lately."""
    newest = [run for queue in application.queues for run in site.hf.list_runs(queue=queue, limit=1)]
    return any(not run.ended or site.hf.clock.now() - run.created_at < LATELY for run in newest)
