"""/start: the front page. It says what each application does and links to it."""
# No postponed annotations: FastAPI could not resolve `site`, which the endpoints use as a closure.

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

RECENT = timedelta(seconds=30)


def router(site: Site, file: Path, *, token: str) -> APIRouter:
    """Serve the front page, and redirect to the sites of the applications; an admin of this site is signed in there."""
    pages = site.resource()

    @pages.get("/start", name="system.start")
    def start(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return site.render(request, who, "start.html", statuses=[_for_page(one) for one in status.read(file)])

    @pages.get("/start/{name}/{path:path}", name="system.open")
    def go(request: Request, who: Annotated[Who, Depends(site.viewer)], name: str, path: str) -> Response:
        found = [one for one in status.read(file) if one.name == name]
        if not found:
            raise Problem("unknown_application", f"no application named {name!r} is running", status=404)
        query = request.query_params.multi_items()
        # All sites accept the same token, but each has its own sessions: the token signs an admin in to the next one.
        if who.role == "admin" and not _is_on_this_site(found[0]):
            query.append(("token", token))
        target = f"{found[0].site}/{path}?{urlencode(query)}"
        return RedirectResponse(target.removesuffix("?"), 303)

    return pages


def _is_on_this_site(status: ApplicationStatus) -> bool:
    return registry.find(status.name).site is None


def _for_page(status: ApplicationStatus) -> dict[str, Any]:
    """The status as the page shows it: 'working' instead of 'up' while the application has active or recent runs."""
    application = registry.find(status.name)
    working = status.state == "up" and _has_recent_runs(status, application)
    dashboard = "holdfast/" if application.site is not None else ""
    queue = f"?{urlencode({'queue': application.queues[0]})}" if application.queues else ""
    return asdict(status) | {
        "state": "working" if working else status.state,
        "page": status.page.removeprefix("/"),
        "runs": f"{dashboard}runs{queue}",
        "links": application.links,
    }


def _has_recent_runs(status: ApplicationStatus, application: Application) -> bool:
    """Whether the newest run of a queue has not ended, or was submitted in the last 30 seconds."""
    hf = _open(status.database)
    newest = [run for queue in application.queues for run in hf.search(RunFilter(queue=queue), limit=1).items]
    return any(not run.ended or hf.clock.now() - run.created_at < RECENT for run in newest)


@lru_cache
def _open(url: str) -> Holdfast:
    return Holdfast(url)
