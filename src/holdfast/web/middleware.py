"""Middleware: checks the Host header, answers HEAD requests, and adds security headers to every response."""

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


class HostCheck:
    """Refuses requests for unknown host names, which protects against DNS rebinding.

    `hosts` are the allowed names besides the loopback names. A wildcard such as 0.0.0.0 allows every IP address,
    because DNS rebinding needs a name.
    """

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
        detail = "this server does not accept this host name; allow it with --allowed-host"
        refusal = answer_to(Problem("wrong_host", detail, status=421))
        assert refusal is not None
        await refusal(scope, receive, hardened)

    async def _head(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the headers of a GET response. The response ends there, even if it is an endless stream."""

        async def head(message: Message) -> None:
            if message["type"] != "http.response.start":
                raise OSError("a HEAD request has no body")
            await send(message)
            await send({"type": "http.response.body", "body": b""})

        with contextlib.suppress(OSError, ClientDisconnect):
            await self._app({**scope, "method": "GET"}, receive, head)


def host_in(header: str) -> str:
    """Return the host name of a Host header, without the port."""
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


def names(if_none_match: str | None, etag: str) -> bool:
    """Return whether `If-None-Match` contains this ETag."""
    tags = [tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")]
    return etag in tags or "*" in tags


def harden(headers: MutableHeaders) -> None:
    """Add the security headers that the endpoint has not set itself."""
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
