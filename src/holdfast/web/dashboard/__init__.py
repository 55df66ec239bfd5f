"""The dashboard: one file a page, rendered here; what changes is fetched anew by the page when it is told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

from holdfast.web.dashboard import builds, keys, overview, pipelines, queues, run, runs, schedules, workers

if TYPE_CHECKING:
    from holdfast.web.site import Site


def router(site: Site) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    for page in (overview, runs, run, pipelines, schedules, builds, keys, queues, workers):
        router.include_router(page.router(site))
    return router
