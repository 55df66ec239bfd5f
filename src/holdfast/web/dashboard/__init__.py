"""The dashboard: server-rendered pages, one module each. An open page refreshes itself when its data changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

from holdfast.web.dashboard import builds, keys, overview, pipelines, queues, run, runs, schedules, workers

if TYPE_CHECKING:
    from holdfast.web.site import Site


def add_to(router: APIRouter, site: Site, *, prefix: str) -> None:
    """Serve the pages under this prefix."""
    for page in (overview, runs, run, pipelines, schedules, builds, keys, queues, workers):
        router.include_router(page.router(site), prefix=prefix, include_in_schema=False)
