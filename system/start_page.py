"""/start: every application of the tree, what it shows, its status, and a link to it."""
# No postponed annotations: FastAPI could not see the `site` that the endpoint closes over.

from dataclasses import asdict
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from apps.shared.definition import Application
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from holdfast import Holdfast, RunFilter
from holdfast.web import Problem, Site, Who
from system import registry, status
from system.status import ApplicationStatus

LATELY = timedelta(seconds=30)


def router(site: Site, file: Path, *, token: str) -> APIRouter:
    """The page, and the way from it to an application's own site, which opens signed in for an admin of this one."""
    pages = site.resource()

    @pages.get("/start", name="system.start")
    def start(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return site.render(request, who, "start.html", statuses=[_shown(one) for one in status.read(file)])

    @pages.get("/start/{name}/{path:path}", name="system.open")
    def go(request: Request, who: Annotated[Who, Depends(site.viewer)], name: str, path: str) -> Response:
        found = [one for one in status.read(file) if one.name == name]
        if not found:
            raise Problem("unknown_application", f"no application {name!r} runs here", status=404)
        query = request.query_params.multi_items()
        # The tree has one token, and each site its own sessions: this is how a person gets from one to the next.
        brought = [("token", token)] if who.role == "admin" and not _is_here(found[0]) else []
        there = f"{found[0].site}/{path}?{urlencode(query + brought)}"
        return RedirectResponse(there.removesuffix("?"), 303)

    return pages


def _is_here(status: ApplicationStatus) -> bool:
    """Whether its pages are this site's own."""
    return registry.find(status.name).site is None


def _shown(status: ApplicationStatus) -> dict[str, Any]:
    """An application as the page shows it: 'working' instead of 'up' where its work goes through."""
    application = registry.find(status.name)
    working = status.state == "up" and _works(status, application)
    dashboard = "holdfast/" if application.site is not None else ""
    queue = f"?{urlencode({'queue': application.queues[0]})}" if application.queues else ""
    return asdict(status) | {
        "state": "working" if working else status.state,
        "page": status.page.removeprefix("/"),
        "runs": f"{dashboard}runs{queue}",
        "links": application.links,
    }


def _works(status: ApplicationStatus, application: Application) -> bool:
    """Whether something of it runs, waits or was submitted lately."""
    hf = _opened(status.database)
    newest = [run for queue in application.queues for run in hf.search(RunFilter(queue=queue), limit=1).items]
    return any(not run.ended or hf.clock.now() - run.created_at < LATELY for run in newest)


@lru_cache
def _opened(url: str) -> Holdfast:
    return Holdfast(url)
