"""Routes: every route needs a token unless it is marked open, limits request bodies, and sets security headers.

This holds wherever the router is mounted, even if an endpoint declares no dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from holdfast.web.middleware import harden
from holdfast.web.problems import Problem, answer_to, internal_error
from holdfast.web.rate_limits import bounded

if TYPE_CHECKING:
    from holdfast.web.site import Site

F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def is_open(endpoint: F) -> F:
    """Decorate an endpoint that needs no token."""
    endpoint.holdfast_open = True  # type: ignore[attr-defined]
    return endpoint


def takes(most: int) -> Callable[[F], F]:
    """Decorate an endpoint to accept bodies of up to `most` bytes, instead of the limit in the settings."""

    def mark(endpoint: F) -> F:
        endpoint.holdfast_takes = most  # type: ignore[attr-defined]
        return endpoint

    return mark


def resource(site: Site, prefix: str = "", *, tags: list[str] | None = None) -> APIRouter:
    """Create a router whose routes are protected as described above."""
    return APIRouter(prefix=prefix, route_class=_route_of(site), tags=list(tags or ()))


def _route_of(site: Site) -> type[APIRoute]:
    class Route(APIRoute):
        """A route of one site."""

        def get_route_handler(self) -> Handler:
            handle, endpoint, name = super().get_route_handler(), self.endpoint, self.name or ""
            most = getattr(endpoint, "holdfast_takes", site.hf.settings.max_body_bytes)
            closed = not getattr(endpoint, "holdfast_open", False)

            async def answered(request: Request) -> Response:
                try:
                    request = bounded(request, most)
                    response = (await site.enter(request) if closed else None) or await handle(request)
                except Exception as error:
                    response = sign_in_first(site, request, error) or answer_to(error) or internal_error(error, request)
                    if (
                        not name.startswith("holdfast.api.")
                        and wants_page(request)
                        and "hx-request" not in request.headers
                    ):
                        response = site.problem_page(request, response)
                harden(response.headers)
                return response

            return answered

    return Route


def sign_in_first(site: Site, request: Request, error: Exception) -> Response | None:
    """Redirect a browser that is not signed in to the sign-in page; return None for programs and other errors."""
    if not isinstance(error, Problem) or error.problem != "not_signed_in" or not wants_page(request):
        return None
    there = site.sign_in_url(request)
    if there is None:
        return None
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={"HX-Redirect": there})
    return RedirectResponse(there, 303) if request.method == "GET" else None


def wants_page(request: Request) -> bool:
    """Return whether the request comes from a browser that expects HTML."""
    return "text/html" in request.headers.get("accept", "") or "hx-request" in request.headers
