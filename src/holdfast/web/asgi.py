"""The whole application that `holdfast serve` runs."""

from __future__ import annotations

from fastapi import FastAPI

from holdfast.version import VERSION
from holdfast.web.site import Site


def create_app(site: Site) -> FastAPI:
    """API under /api, dashboard at /."""
    app = FastAPI(title=site.title, version=VERSION, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.include_router(site.router())
    return app
