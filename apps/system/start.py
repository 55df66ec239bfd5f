"""/start: every application of the tree, what it shows, how it stands, and the way to it."""
# No postponed annotations: FastAPI could not see the `site` that the endpoint closes over.

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from apps import registry
from apps.system import board
from holdfast.web import Site, Who

LATELY = timedelta(seconds=30)


def router(site: Site, file: Path) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    @pages.get("/start", name="system.start")
    def start(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        standings = [_lively(site, standing) for standing in board.read(file)]
        return site.render(request, who, "start.html", standings=standings)

    return pages


def _lively(site: Site, standing: board.Standing) -> board.Standing:
    """'working' instead of 'up' where something runs, waits or was submitted lately."""
    busy = standing.state == "up" and _busy(site, registry.find(standing.name).queues)
    return replace(standing, state="working") if busy else standing


def _busy(site: Site, queues: Sequence[str]) -> bool:
    newest = [run for queue in queues for run in site.hf.list_runs(queue=queue, limit=1)]
    return any(not run.ended or site.hf.clock.now() - run.created_at < LATELY for run in newest)
