"""The API: one file a noun, JSON under /api. Each endpoint calls one method of the engine."""

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


def router(site: Site) -> APIRouter:
    described = nouns(site)
    router = APIRouter()
    router.include_router(described)
    router.include_router(openapi.router(site, described))
    return router


def nouns(site: Site) -> APIRouter:
    """What the API's document speaks of."""
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
