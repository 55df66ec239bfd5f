"""Cookies: how a browser keeps its session, and proves that a change was asked for by one of our own pages.

Lax, not Strict: a browser that follows a link from elsewhere (the sign-in link in a terminal or a mail, a run's link in
a chat) sends a Lax cookie and would not send a Strict one, not even after our own redirect. What a Lax cookie leaves
open, a change that another site asks for, is closed twice: by the token below and by where the request came from.
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
    """What distinguishes this Holdfast from others on the same host."""
    place = connect.file_of(settings.url) or connect.hidden(settings.url)
    return json_text.digest(str(place), settings.prefix, settings.schema_name)


def name(request: Request, installation: str) -> str:
    """The cookie's name here. A browser does not keep ports apart, so the name does."""
    port = request.url.port or 0
    # The prefix makes a browser refuse such a cookie from a neighbour's host, and without TLS.
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
    """What a page of ours knows and another site can't: derived from the session, so that nothing need be kept."""
    return hmac.new(secret.encode(), b"holdfast csrf", hashlib.sha256).hexdigest()


def foreign(request: Request) -> bool | None:
    """Whether a browser says that another site asks; None where it says nothing.

    It says `null` for its origin to who asked it to keep referrers to itself, as our pages do.
    """
    if (fetched := request.headers.get("sec-fetch-site")) is not None:
        return fetched not in ("same-origin", "none")
    origin = request.headers.get("origin", "null")
    return None if origin == "null" else urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()


def _secure(request: Request) -> bool:
    return request.url.scheme == "https"
