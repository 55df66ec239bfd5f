"""Middleware: the size, origin and headers of every request and answer."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.web.problems import Problem, answer_to

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "media-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Cache-Control": "no-store",
}


LOOPBACK = ("localhost", "127.0.0.1", "::1")


EVERYWHERE = ("0.0.0.0", "::", "")


class Doorman:
    """`hosts` are the names that it goes by besides those of the loopback; one that means 'everywhere' lets in any
    address, which no one can make another's name lead to."""

    def __init__(self, app: ASGIApp, *, hosts: Sequence[str] = ()) -> None:
        self._app = app
        self._names = {name.lower().strip("[]") for name in (*LOOPBACK, *hosts) if name not in EVERYWHERE}
        self._addresses = any(name in EVERYWHERE for name in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                harden(MutableHeaders(scope=message))
            await send(message)

        host = host_in(Headers(scope=scope).get("host", ""))
        if host in self._names or (self._addresses and _is_address(host)):
            if scope["method"] == "HEAD":
                await self._head(scope, receive, hardened)
            else:
                await self._app(scope, receive, hardened)
            return
        refusal = answer_to(Problem("wrong_host", "this server does not go by that name (--allowed-host)", status=421))
        assert refusal is not None
        await refusal(scope, receive, hardened)

    async def _head(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The head of what a GET is answered; it ends there, also where the answer would go on for ever."""

        async def head(message: Message) -> None:
            if message["type"] != "http.response.start":
                raise OSError("only the head is wanted")
            await send(message)
            await send({"type": "http.response.body", "body": b""})

        with contextlib.suppress(OSError, ClientDisconnect):
            await self._app({**scope, "method": "GET"}, receive, head)


def host_in(header: str) -> str:
    """The name in a Host header, without its port."""
    header = header.strip().lower()
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def harden(headers: MutableHeaders) -> None:
    """Add what is missing; what an endpoint has said itself stands."""
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
