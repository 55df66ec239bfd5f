"""Site: the API and the dashboard of one Holdfast, with everything that its pages and endpoints share."""

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
    """The API and the dashboard of one Holdfast.

    viewer, operator, admin   FastAPI dependencies that return a `Who` or refuse the request
    resource                  creates a router with the authentication, limits and headers of the built-in routes
    include                   adds such a router to `create_app` and `holdfast serve`
    on_start                  registers a function that runs once before the first request
    render                    renders a page in the common frame
    streams                   sends events as they happen
    uploads                   receives files within limits
    """

    def __init__(
        self,
        hf: Holdfast,
        *,
        title: str = "Holdfast",
        admin_token: str | None = None,
        access: Custom | None = None,
        sign_in: str | None = None,
        templates: Path | None = None,
        static: Path | None = None,
        links: Mapping[str, str] | None = None,
        at: str = "",
    ) -> None:
        """Create a site.

        `access` authenticates requests instead of the built-in tokens; `sign_in` is then the URL where users sign in.
        `links` are the first navigation entries: label → name of a route. `at` is the path under which `create_app`
        mounts the API and the dashboard, if the root is for the application's own pages. The first of `links` is then
        the start page.
        """
        if at and not (at.startswith("/") and at.rstrip("/") == at):
            raise ValueError(f"at={at!r} is not a valid path: it must start with a slash and must not end with one")
        self.hf, self.title, self.at = hf, title, at
        self.own: list[APIRouter] = []
        self.starts: list[Callable[[], object]] = []
        fixed = hf.settings.admin_token
        self.access = Access(hf, token=admin_token or (fixed.get_secret_value() if fixed else None), custom=access)
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
        """Render a template of the dashboard or of the application in the common frame."""
        return self._pages.render(request, who, template, **context)

    def problem_page(self, request: Request, answer: Response) -> Response:
        """Render a problem response as a page, with the same status and headers."""
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
        """Create a router whose routes need a token, limit request bodies, return problems and set security headers."""
        return routes.resource(self, prefix, tags=tags)

    def include(self, router: APIRouter) -> None:
        """Also serve the routes of a router that `resource` has created. They precede the built-in ones."""
        self.own.append(router)

    def document(self) -> dict[str, Any]:
        """Return the OpenAPI 3.1 document of the included routes; `create_app` serves it at /openapi.json."""
        return openapi.document_of(self)

    def on_start(self, function: F) -> F:
        """Decorate a function that `create_app` calls once, in a thread, before the first request.

        If it raises, the application does not start.
        """
        self.starts.append(function)
        return function

    def router(self) -> APIRouter:
        """Return a router with the API under /api and the dashboard beside it; mount it under any prefix."""
        router = APIRouter()
        self.add_to(router)
        return router

    def add_to(self, router: APIRouter, *, prefix: str = "") -> None:
        """Add the API and the dashboard to a router.

        It includes each part directly: FastAPI rebuilds all routes of a router for each router that includes it.
        """
        api.add_to(router, self, prefix=f"{prefix}/api")
        if self._own_sign_in:
            router.include_router(signing_in.router(self), prefix=prefix, include_in_schema=False)
        router.include_router(static_files.router(self), prefix=prefix, include_in_schema=False)
        router.include_router(changes.router(self), prefix=prefix, include_in_schema=False)
        dashboard.add_to(router, self, prefix=prefix)

    async def enter(self, request: Request) -> Response | None:
        """Authenticate a request. A link with a token signs the user in and redirects to the URL without the token."""
        token = request.query_params.get("token")
        if token and self._own_sign_in and request.method == "GET" and routes.wants_page(request):
            return await signing_in.with_token(self, request, token, then=signing_in.without_token(request))
        await self.access.admit(request)
        return None

    def sign_in_url(self, request: Request) -> str | None:
        """Return the URL of the sign-in page that leads back to this request, or None if there is no such page."""
        if not self._own_sign_in:
            return self._sign_in
        there = signing_in.without_token(request) if request.method == "GET" else ""
        if "hx-request" in request.headers:
            there = ""
        page = request.url_for("holdfast.sign_in").path
        return f"{page}?{urlencode({'next': there})}" if there else str(page)
