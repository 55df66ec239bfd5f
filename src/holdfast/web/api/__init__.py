"""The API: one file a noun, JSON under /api. Each endpoint calls one method of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

from holdfast.web.api import runs

if TYPE_CHECKING:
    from holdfast.web.site import Site


def router(site: Site) -> APIRouter:
    router = APIRouter()
    for noun in (runs,):
        router.include_router(noun.router(site))
    return router
