"""Authentication: who sends a request, and what their role allows.

Everything needs a token except the sign-in page, static files, health checks and, if `metrics_public` is set, /metrics
for requests from this machine.

viewer      may read
operator    may also submit, cancel, pause and trigger
admin       may also change limits and tokens
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from holdfast import tokens
from holdfast.values.tokens import ROLES, Role, Token
from holdfast.web.auth import session_cookies
from holdfast.web.auth.token_cache import TokenCache
from holdfast.web.problems import Problem
from holdfast.web.rate_limits import Buckets, Recent, too_many

if TYPE_CHECKING:
    from holdfast.app import Holdfast

SAFE = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
FORMS = "application/x-www-form-urlencoded"
FAILURES = 20  # wrong tokens that one address may try at once; after that, one every three seconds
ALL_FAILURES = 500  # the same for all addresses together, then ten a second, because a client may fake its address
LET_IN = 3600.0  # seconds for which we remember which token came from which address


@dataclass(frozen=True)
class Who:
    """The user or program that sends a request; `name` is recorded with every change that they make.

    `csrf` is the token that their pages send with every change, as header X-CSRF-Token or form field `csrf`.
    """

    name: str
    role: Role
    csrf: str = field(default="", repr=False, compare=False)

    def may(self, role: Role) -> bool:
        """Return whether their role includes the rights of this role."""
        return ROLES.index(self.role) >= ROLES.index(role)


Custom = Callable[[Request], Who | None]


class Access:
    """Authenticates requests.

    token    the site's own admin token, in addition to the tokens in the database
    custom   a function of the application that authenticates its users instead
    """

    def __init__(self, hf: Holdfast, *, token: str | None, custom: Custom | None = None) -> None:
        self._custom = custom
        self.lookups = TokenCache(hf, token=token)
        self.installation = session_cookies.installation(hf.settings)
        rate = hf.settings.max_requests_per_second
        self._requests = Buckets(hf.clock.elapsed, size=4 * rate, per_second=rate)
        self._failures = Buckets(hf.clock.elapsed, size=FAILURES, per_second=1 / 3)
        self._all_failures = Buckets(hf.clock.elapsed, size=ALL_FAILURES, per_second=10)
        self._let_in = Recent(hf.clock.elapsed, lasts=LET_IN)

    @property
    def takes_a_token(self) -> bool:
        """Whether the site has a token of its own."""
        return self.lookups.fixed is not None

    def take(self, token: str) -> None:
        """Set the site's own token, which has the role admin."""
        self.lookups.fix(token)

    @property
    def is_custom(self) -> bool:
        """Whether the application authenticates its users itself."""
        return self._custom is not None

    def need(self, role: Role) -> Callable[[Request], Awaitable[Who]]:
        """Return a FastAPI dependency that returns the user, or refuses users without this role."""

        async def allowed(request: Request) -> Who:
            who = await self.admit(request)
            if not who.may(role):
                detail = f"your role is {who.role}; this action needs the role {role}"
                raise Problem("not_allowed", detail, status=403)
            return who

        return allowed

    async def admit(self, request: Request) -> Who:
        """Return the authenticated user or raise a Problem. A change must come from our own pages or from a program."""
        known: tuple[Access, Who] | None = request.scope.get("holdfast.who")
        if known is not None and known[0] is self:
            return known[1]
        who = await self._recognise(request)
        if who is None:
            self._count(request, _from(request))
            raise Problem(
                "not_signed_in",
                "sign in, or send 'Authorization: Bearer TOKEN'",
                status=401,
                headers={"WWW-Authenticate": 'Bearer realm="holdfast"'},
            )
        self._count(request, f"{who.role} {who.name}")
        request.scope["holdfast.who"] = (self, who)
        return who

    async def _recognise(self, request: Request) -> Who | None:
        if self._custom is not None:
            who = await run_in_threadpool(self._custom, request)
            # The user's browser may send credentials with every request, so check which site the request came from.
            if who is not None and request.method not in SAFE and _from_browser(request):
                await _refuse_cross_site(request, replace(who, csrf=""))
            return who
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            found = await self.token_of(request, given.strip())
            return None if found is None else Who(found.name, found.role)
        secret = request.cookies.get(session_cookies.name(request, self.installation))
        if not secret:
            return None
        digest = self.session_digest(secret)
        # Check the rate limit before the database looks up an unverified cookie.
        if not self.lookups.was_good(digest) and (wait := self._requests.wait(_from(request))):
            raise too_many("too many requests", wait)
        found = await run_in_threadpool(self.lookups.find, digest)
        if found is None or found.kind != "session":
            return None
        who = Who(found.name, found.role, csrf=session_cookies.csrf(secret))
        if request.method not in SAFE:
            await _refuse_cross_site(request, who)
        return who

    async def token_of(self, request: Request, token: str) -> Token | None:
        """Return the token's record if it is valid. An address that tries too many wrong tokens has to wait."""
        digest, here = tokens.digest(token), address(request)
        # Wrong guesses must not lock out a token that was valid before. The site's own token may be easy to guess, so
        # it counts as known only for addresses that have used it. Otherwise a right guess would get past the limit.
        known = self.lookups.was_good(digest) or f"{digest} {here}" in self._let_in
        if not known and (wait := max(self._failures.wait(here), self._all_failures.wait(""))):
            raise too_many("too many wrong tokens", wait)
        found = await run_in_threadpool(self.lookups.find, digest)
        if found is None or found.kind != "token":
            self._failures.take(here)
            self._all_failures.take("")
            return None
        self._let_in.add(f"{digest} {here}")
        return found

    def session_digest(self, secret: str) -> str:
        """Return the digest under which a session is stored.

        A session that was started with the site's own token is only valid as long as that token is.
        """
        return tokens.digest(self.lookups.fixed or "", secret) if secret.startswith("f") else tokens.digest(secret)

    def _count(self, request: Request, name: str) -> None:
        if wait := self._requests.take(name):
            raise too_many("too many requests", wait)


def address(request: Request) -> str:
    """Return the client address of a request, as far as the server knows it."""
    return request.client.host if request.client is not None else "unknown"


def _from(request: Request) -> str:
    return f"address {address(request)}"


def _from_browser(request: Request) -> bool:
    return any(name in request.headers for name in ("cookie", "origin", "sec-fetch-site"))


async def _refuse_cross_site(request: Request, who: Who) -> None:
    """Refuse a change that a page of another site has sent through the user's browser."""
    cross_site = session_cookies.is_cross_site(request)
    if cross_site or (cross_site is None and not who.csrf):
        raise Problem("cross_site_request", "a page of another site sent this change", status=403)
    if who.csrf and not hmac.compare_digest((await _csrf_token(request)).encode(), who.csrf.encode()):
        raise Problem(
            "csrf_missing",
            "the CSRF token of your session is missing (header X-CSRF-Token or form field 'csrf'); reload the page",
            status=403,
        )


async def _csrf_token(request: Request) -> str:
    """Return the CSRF token of a request. For file uploads it is in the URL, because the body is not read here."""
    given: Any = request.headers.get("x-csrf-token")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given is None and kind == FORMS:
        given = (await request.form()).get("csrf")
    elif given is None and kind == "multipart/form-data":
        given = request.query_params.get("csrf")
    return given if isinstance(given, str) else ""
