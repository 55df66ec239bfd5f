"""/sign-in and /sign-out: start and end a browser session."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from holdfast import tokens
from holdfast.values.tokens import Token
from holdfast.web.auth import session_cookies
from holdfast.web.auth.authentication import Who
from holdfast.web.problems import Problem
from holdfast.web.routes import is_open, resource

if TYPE_CHECKING:
    from holdfast.web.site import Site

LONGEST = 1000


def router(site: "Site") -> APIRouter:
    pages = resource(site)

    @pages.get("/sign-in", name="holdfast.sign_in")
    @is_open
    async def sign_in_page(request: Request, next: str = "", token: str = "") -> Response:
        """Show the sign-in form, or sign in with the token in the link."""
        if token:
            return await with_token(site, request, token, then=next)
        return site.render(request, None, "sign_in.html", next=inside(next), wrong=False)

    @pages.post("/sign-in")
    @is_open
    async def sign_in(
        request: Request,
        token: Annotated[str, Form(max_length=LONGEST)] = "",
        next: Annotated[str, Form(max_length=10 * LONGEST)] = "",
    ) -> Response:
        """Sign in with the token in the form."""
        if session_cookies.is_cross_site(request):
            raise Problem("cross_site_request", "a page of another site can't sign you in", status=403)
        return await with_token(site, request, token.strip(), then=next)

    @pages.post("/sign-out", name="holdfast.sign_out")
    async def sign_out(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """End this session."""
        response = RedirectResponse(request.url_for("holdfast.sign_in").path, 303)
        secret = request.cookies.get(session_cookies.name(request, site.access.installation))
        if secret:
            digest = site.access.session_digest(secret)
            await run_in_threadpool(site.hf.do, lambda tx: tokens.sign_out(tx, digest))
            site.access.lookups.forget(digest)
        session_cookies.remove(request, response, site.access.installation)
        return response

    return pages


async def with_token(site: "Site", request: Request, token: str, *, then: str) -> Response:
    """Sign in and redirect, or show the form again if the token is unknown."""
    there = inside(then) or request.url_for("holdfast.sign_in").path.removesuffix(f"{site.at}/sign-in") + "/"
    response = RedirectResponse(there, 303)
    found = await site.access.token_of(request, token)
    if found is not None:
        is_own = tokens.digest(token) == site.access.lookups.fixed
        secret = f"{'f' if is_own else 's'}{site.hf.ids.secret()}"
        lasts = await run_in_threadpool(_begin_session, site, found, secret)
        session_cookies.put(request, response, site.access.installation, secret, lasts=lasts)
        return response
    page = site.render(request, None, "sign_in.html", next=inside(then), wrong=True)
    page.status_code = 401
    return page


def _begin_session(site: "Site", found: Token, secret: str) -> timedelta:
    """Store the session, and return how long it is valid: never longer than its token."""
    now = site.hf.clock.now()
    expires_at = min(now + session_cookies.LASTS, found.expires_at or now + session_cookies.LASTS)
    digest = site.access.session_digest(secret)
    site.hf.do(lambda tx: tokens.sign_in(tx, found.name, role=found.role, expires_at=expires_at, digest=digest))
    return expires_at - now


def without_token(request: Request) -> str:
    """Return the path and query of the request, without the token."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
    return request.url.path + (f"?{urlencode(kept)}" if kept else "")


def inside(there: str) -> str:
    """Return the path if it is on this host, otherwise an empty string."""
    parts = urlsplit(there)
    own = there.startswith("/") and not there.startswith("//") and not parts.scheme and not parts.netloc
    # Browsers read a backslash as a slash and drop unprintable characters.
    return there if own and "\\" not in there and there.isprintable() else ""
