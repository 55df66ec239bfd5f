"""Site: what every page and endpoint of one installation needs, and the router that has them all."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from holdfast.web import api, dashboard, routes, static_files
from holdfast.web.api import openapi
from holdfast.web.auth import sign_in as signing_in
from holdfast.web.auth.authentication import Access, Custom, Who
from holdfast.web.live import changes
from holdfast.web.live.streams import Streams
from holdfast.web.problems import MEDIA_TYPE
from holdfast.web.rendering import Pages
from holdfast.web.static_files import Statics
from holdfast.web.uploads import Uploads

if TYPE_CHECKING:
    from holdfast.app import Holdfast

HERE = Path(__file__).parent
F = TypeVar("F", bound=Callable[[], object])


class Site:
    """The web side of one Holdfast.

    viewer, operator, admin   dependencies that give a `Who`, or refuse
    resource                  a router whose routes are closed, bounded and hardened like ours
    include                   adds such a router to what `create_app` and `holdfast serve` serve
    on_start                  what is called once before the first request
    render                    a page in the common frame
    streams                   events as they happen
    uploads                   files that someone sends, within limits
    """

    def __init__(
        self,
        hf: Holdfast,
        *,
        title: str = "Holdfast",
        token: str | None = None,
        access: Custom | None = None,
        sign_in: str | None = None,
        templates: Path | None = None,
        static: Path | None = None,
        links: Mapping[str, str] | None = None,
        at: str = "",
    ) -> None:
        """A site; `access` decides who asks instead of our passes, `sign_in` is then where its users sign in.

        `links` are entries that the navigation begins with: label → the name of a route; the first is where a person
        begins. `at` is the path below which `create_app` puts the API and the dashboard, where the root is for pages
        of the application's own.
        """
        if at and not (at.startswith("/") and at.rstrip("/") == at):
            raise ValueError(f"at={at!r} is no path: it begins with a slash and ends without one")
        self.hf, self.title, self.at = hf, title, at
        self.own: list[APIRouter] = []
        self.starts: list[Callable[[], object]] = []
        fixed = hf.settings.token
        self.access = Access(hf, token=token or (fixed.get_secret_value() if fixed else None), custom=access)
        self.viewer: Callable[[Request], Awaitable[Who]] = self.access.need("viewer")
        self.operator: Callable[[Request], Awaitable[Who]] = self.access.need("operator")
        self.admin: Callable[[Request], Awaitable[Who]] = self.access.need("admin")
        self.streams = Streams(hf)
        self.uploads = Uploads()
        self.statics = Statics([HERE / "static", *([static] if static is not None else [])])
        version = self.statics.version
        self._pages = Pages(
            title, templates, now=hf.clock.now, static_version=version, links=links or {}, apart=bool(at)
        )
        self._own_sign_in, self._sign_in = access is None, sign_in

    def render(self, request: Request, who: Who | None, template: str, **context: Any) -> Response:
        """A page of ours, or of the application's own templates, in the common frame."""
        return self._pages.render(request, who, template, **context)

    def problem_page(self, request: Request, answer: Response) -> Response:
        """A problem as a person reads it, with the status and the headers that it has anyway."""
        if answer.media_type != MEDIA_TYPE:
            return answer
        known = request.scope.get("holdfast.who")
        page = self.render(request, known[1] if known else None, "problem.html", problem=json.loads(bytes(answer.body)))
        page.status_code = answer.status_code
        for name, value in answer.headers.items():
            if name not in ("content-type", "content-length"):
                page.headers[name] = value
        return page

    def resource(self, prefix: str = "", *, tags: list[str] | None = None) -> APIRouter:
        """A router whose routes need a pass, read bounded bodies, answer errors as problems and harden every answer."""
        return routes.resource(self, prefix, tags=tags)

    def include(self, router: APIRouter) -> None:
        """Serve these pages and endpoints, too: a router of `resource`. They come before ours."""
        self.own.append(router)

    def document(self) -> dict[str, Any]:
        """What is included, as OpenAPI 3.1; `create_app` serves it at /openapi.json."""
        return openapi.document_of(self)

    def on_start(self, function: F) -> F:
        """Decorate a function that `create_app` calls once, in a thread, before it takes the first request.

        What it raises keeps the application from starting.
        """
        self.starts.append(function)
        return function

    def router(self) -> APIRouter:
        """The API under /api and the dashboard beside it; mounts under any prefix."""
        router = APIRouter()
        router.include_router(api.router(self), prefix="/api")
        if self._own_sign_in:
            router.include_router(signing_in.router(self), include_in_schema=False)
        router.include_router(static_files.router(self), include_in_schema=False)
        router.include_router(changes.router(self), include_in_schema=False)
        router.include_router(dashboard.router(self))
        return router

    async def enter(self, request: Request) -> Response | None:
        """Let someone in who may; a link that brings a token along signs them in and leads on without it."""
        brought = request.query_params.get("token")
        if brought and self._own_sign_in and request.method == "GET" and routes.wants_page(request):
            return await signing_in.with_token(self, request, brought, then=signing_in.without_token(request))
        await self.access.admit(request)
        return None

    def sign_in_url(self, request: Request) -> str | None:
        """Where a person can sign in who wants to go where this request goes; None where only programs come."""
        if not self._own_sign_in:
            return self._sign_in
        there = signing_in.without_token(request) if request.method == "GET" else ""
        if "hx-request" in request.headers:
            there = ""
        page = request.url_for("holdfast.sign_in").path
        return f"{page}?{urlencode({'next': there})}" if there else str(page)
