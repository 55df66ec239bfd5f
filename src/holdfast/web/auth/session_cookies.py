"""Session cookies and protection against cross-site requests.

The cookie is SameSite=Lax, not Strict. When a browser follows a link from a terminal, an email or a chat, it sends a
Lax cookie but not a Strict one, even after our redirect. Lax does not stop every change that another site sends. Two
checks do: the CSRF token, and the origin of the request.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from urllib.parse import urlsplit

from fastapi import Request, Response

from holdfast.store import connect
from holdfast.support import json_text
from holdfast.support.settings import Settings

LASTS = timedelta(hours=12)


def installation(settings: Settings) -> str:
    """Return a digest that distinguishes this Holdfast from others on the same host."""
    location = connect.file_of(settings.url) or connect.hidden(settings.url)
    return json_text.digest(str(location), settings.table_prefix, settings.schema_name)


def name(request: Request, installation: str) -> str:
    """Return the name of the cookie. It contains the port, because browsers share cookies between ports."""
    port = request.url.port or 0
    # With this prefix, browsers reject the cookie if a subdomain sets it or if there is no TLS.
    return f"{'__Host-' if _secure(request) else ''}holdfast_{json_text.digest(installation, str(port))[:8]}"


def put(request: Request, response: Response, installation: str, secret: str, *, lasts: timedelta) -> None:
    response.set_cookie(
        name(request, installation),
        secret,
        max_age=int(lasts.total_seconds()),
        path="/",
        secure=_secure(request),
        httponly=True,
        samesite="lax",
    )


def remove(request: Request, response: Response, installation: str) -> None:
    response.delete_cookie(
        name(request, installation), path="/", secure=_secure(request), httponly=True, samesite="lax"
    )


def csrf(secret: str) -> str:
    """Return the CSRF token of a session. It is derived from the session's secret, so nothing is stored."""
    return hmac.new(secret.encode(), b"holdfast csrf", hashlib.sha256).hexdigest()


def is_cross_site(request: Request) -> bool | None:
    """Return whether the browser says that another site sent the request; None if it does not say.

    The origin is `null` for pages with a `no-referrer` policy, such as ours.
    """
    if (fetched := request.headers.get("sec-fetch-site")) is not None:
        return fetched not in ("same-origin", "none")
    origin = request.headers.get("origin", "null")
    return None if origin == "null" else urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()


def _secure(request: Request) -> bool:
    return request.url.scheme == "https"
