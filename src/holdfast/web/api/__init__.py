"""The JSON API under /api, one module per subject. Each endpoint calls one method of Holdfast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends

from holdfast.web.api import (
    artifacts,
    audit,
    builds,
    events,
    jobs,
    keys,
    logs,
    openapi,
    pipelines,
    queues,
    runs,
    schedules,
    statistics,
    tokens,
    workers,
)
from holdfast.web.api.query_parameters import only_known

if TYPE_CHECKING:
    from holdfast.web.site import Site


def add_to(router: APIRouter, site: Site, *, prefix: str) -> None:
    """Serve the API under this prefix."""
    described = nouns(site)
    router.include_router(described, prefix=prefix)
    router.include_router(openapi.router(site, described), prefix=prefix)


def nouns(site: Site) -> APIRouter:
    """Return the router with all documented endpoints."""
    router = APIRouter(
        responses=openapi.RESPONSES,
        generate_unique_id_function=openapi.operation_id,
        dependencies=[Depends(only_known)],
    )
    for noun in (
        jobs,
        runs,
        events,
        logs,
        artifacts,
        builds,
        keys,
        pipelines,
        schedules,
        queues,
        workers,
        statistics,
        audit,
        tokens,
    ):
        router.include_router(noun.router(site))
    return router
