"""Site: what every page and endpoint of one installation needs, and the router that has them all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from holdfast.engine import Holdfast
from holdfast.web import api, dashboard
from holdfast.web.access import Access, Who
from holdfast.web.pages import Pages


class Site:
    """The web side of one Holdfast.

    viewer, operator, admin   dependencies that give a `Who`, or refuse
    render                    a page in the common frame
    """

    def __init__(
        self, hf: Holdfast, *, title: str = "Holdfast", token: str | None = None, templates: Path | None = None
    ) -> None:
        self.hf, self.title = hf, title
        self.access = Access(hf, token=token)
        self.viewer: Callable[[Request], Who] = self.access.need("viewer")
        self.operator: Callable[[Request], Who] = self.access.need("operator")
        self.admin: Callable[[Request], Who] = self.access.need("admin")
        self._pages = Pages(title, templates, now=hf.clock.now)

    def render(self, request: Request, who: Who | None, template: str, **context: Any) -> Response:
        """A page of ours, or of the application's own templates, in the common frame."""
        return self._pages.render(request, who, template, **context)

    def router(self) -> APIRouter:
        """The API under /api and the dashboard beside it; mounts under any prefix."""
        router = APIRouter()
        router.include_router(api.router(self), prefix="/api")
        router.include_router(dashboard.router(self))
        return router
