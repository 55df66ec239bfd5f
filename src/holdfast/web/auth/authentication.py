"""Access: who asks, and what they may do. Closed by default: without a pass there is nothing but the sign-in page.

viewer      may look
operator    may also cancel, submit, pause, trigger
admin       may also change limits and passes
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from holdfast import tokens
from holdfast.values.tokens import ROLES, Pass, Role
from holdfast.web.auth import session_cookies
from holdfast.web.auth.token_cache import Lookups
from holdfast.web.problems import Problem
from holdfast.web.rate_limits import Buckets, Recent, too_many

if TYPE_CHECKING:
    from holdfast.app import Holdfast

SAFE = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
FORMS = "application/x-www-form-urlencoded"
FAILURES = 20  # wrong tokens at once that one address may try; then one every three seconds
ALL_FAILURES = 500  # that all may try together, then ten a second: who speaks to us directly can claim any address
LET_IN = 3600.0  # seconds for which it is known which token came from which address


@dataclass(frozen=True)
class Who:
    """Someone who may do what `role` may; `name` stands in the events of what they did.

    `csrf` is what their pages send along with every change, as header X-CSRF-Token or form field `csrf`.
    """

    name: str
    role: Role
    csrf: str = field(default="", repr=False, compare=False)

    def may(self, role: Role) -> bool:
        """Whether they may do what someone of this role may."""
        return ROLES.index(self.role) >= ROLES.index(role)


Custom = Callable[[Request], Who | None]


class Access:
    """Decides who a request is from.

    token    a secret that makes whoever has it an admin, besides the passes that were given out
    custom   a function of the application's own that decides instead: it knows its users, we don't
    """

    def __init__(self, hf: Holdfast, *, token: str | None, custom: Custom | None = None) -> None:
        self._custom = custom
        self.lookups = Lookups(hf, token=token)
        self.installation = session_cookies.installation(hf.settings)
        rate = hf.settings.max_requests
        self._requests = Buckets(hf.clock.elapsed, size=4 * rate, per_second=rate)
        self._failures = Buckets(hf.clock.elapsed, size=FAILURES, per_second=1 / 3)
        self._all_failures = Buckets(hf.clock.elapsed, size=ALL_FAILURES, per_second=10)
        self._let_in = Recent(hf.clock.elapsed, lasts=LET_IN)

    @property
    def takes_a_token(self) -> bool:
        """Whether the site has a token of its own."""
        return self.lookups.fixed is not None

    def take(self, token: str) -> None:
        """Make this the site's own token: its bearer is an admin."""
        self.lookups.fix(token)

    @property
    def is_custom(self) -> bool:
        """Whether the application knows its users itself."""
        return self._custom is not None

    def need(self, role: Role) -> Callable[[Request], Awaitable[Who]]:
        """A dependency: who asks, if they may do what this role may."""

        async def allowed(request: Request) -> Who:
            who = await self.admit(request)
            if not who.may(role):
                raise Problem("not_allowed", f"{who.name} has the role {who.role}; this takes {role}", status=403)
            return who

        return allowed

    async def admit(self, request: Request) -> Who:
        """Who asks, if they may come in at all; a change must come from one of our own pages or from a program."""
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
            # What lets them in may go with every request of their browser, so only the browser can tell who asks.
            if who is not None and request.method not in SAFE and _from_browser(request):
                await _ours(request, replace(who, csrf=""))
            return who
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            found = await self.token_of(request, given.strip())
            return None if found is None else Who(found.name, found.role)
        secret = request.cookies.get(session_cookies.name(request, self.installation))
        if not secret:
            return None
        digest = self.session_digest(secret)
        # Before the database is asked about what may be anything: who asks too often is not answered.
        if not self.lookups.was_good(digest) and (wait := self._requests.wait(_from(request))):
            raise too_many("too many requests", wait)
        found = await run_in_threadpool(self.lookups.find, digest)
        if found is None or found.kind != "session":
            return None
        who = Who(found.name, found.role, csrf=session_cookies.csrf(secret))
        if request.method not in SAFE:
            await _ours(request, who)
        return who

    async def token_of(self, request: Request, token: str) -> Pass | None:
        """The pass that this token is, if it is good; who tries too many wrong ones has to wait."""
        digest, here = tokens.digest(token), address(request)
        # Guesses do not shut out a token that was good before. The site's own, which a person may have thought of, is
        # known only where it was before: else a right guess among too many would be told.
        known = self.lookups.was_good(digest) or f"{digest} {here}" in self._let_in
        if not known and (wait := max(self._failures.wait(here), self._all_failures.wait(""))):
            raise too_many("too many wrong tokens came from your address", wait)
        found = await run_in_threadpool(self.lookups.find, digest)
        if found is None or found.kind != "token":
            self._failures.take(here)
            self._all_failures.take("")
            return None
        self._let_in.add(f"{digest} {here}")
        return found

    def session_digest(self, secret: str) -> str:
        """What is stored of a session. One that the site's own token began ends with that token."""
        return tokens.digest(self.lookups.fixed or "", secret) if secret.startswith("f") else tokens.digest(secret)

    def _count(self, request: Request, name: str) -> None:
        if wait := self._requests.take(name):
            raise too_many("too many requests", wait)


def address(request: Request) -> str:
    """Where a request comes from, as far as the server can tell."""
    return request.client.host if request.client is not None else "unknown"


def _from(request: Request) -> str:
    return f"address {address(request)}"


def _from_browser(request: Request) -> bool:
    return any(name in request.headers for name in ("cookie", "origin", "sec-fetch-site"))


async def _ours(request: Request, who: Who) -> None:
    """Refuse a change that a browser was led to by someone else's page."""
    foreign = session_cookies.foreign(request)
    if foreign or (foreign is None and not who.csrf):
        raise Problem("foreign_request", "this change was asked for by another site's page", status=403)
    if who.csrf and not hmac.compare_digest((await _given(request)).encode(), who.csrf.encode()):
        raise Problem(
            "csrf_missing",
            "a change needs your session's token: header X-CSRF-Token or form field 'csrf'; reload the page",
            status=403,
        )


async def _given(request: Request) -> str:
    """The token that came with a change; of a body of files only the URL is looked at, because it is not read here."""
    given: Any = request.headers.get("x-csrf-token")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given is None and kind == FORMS:
        given = (await request.form()).get("csrf")
    elif given is None and kind == "multipart/form-data":
        given = request.query_params.get("csrf")
    return given if isinstance(given, str) else ""
