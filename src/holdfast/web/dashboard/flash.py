"""Notices: what a page says, once, of what its reader has just done. They come in a cookie, never in an address: a
link can't put words into a page."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from urllib.parse import unquote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from holdfast.support.errors import HoldfastError

COOKIE = "holdfast_said"
LONGEST = 600
LASTS = 10  # seconds: so long it may take from the change to the page


@dataclass(frozen=True)
class Notice:
    """A sentence for one page; `bad` if it was not done."""

    path: str
    text: str
    bad: bool


@dataclass(frozen=True)
class Led:
    """What was done leads to another page than the one it was asked for on."""

    text: str
    there: str


def acted(request: Request, there: str, do: Callable[[], str | Led]) -> Response:
    """Do something and lead on to a page, which says how it went."""
    bad = False
    try:
        done = do()
        text, there = (done.text, done.there) if isinstance(done, Led) else (done, there)
    except HoldfastError as error:
        text, bad = str(error), True
    notice = Notice(there.partition("?")[0], text[:LONGEST], bad)
    response = RedirectResponse(there, 303)
    packed = base64.urlsafe_b64encode(json.dumps(asdict(notice)).encode()).decode()
    response.set_cookie(
        COOKIE, packed, max_age=LASTS, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return response


def said(request: Request) -> Notice | None:
    """What there is to say on this page."""
    packed = request.cookies.get(COOKIE)
    if not packed or "hx-request" in request.headers:
        return None
    try:
        notice = Notice(**json.loads(base64.urlsafe_b64decode(packed)))
    except (binascii.Error, ValueError, TypeError):
        return None
    return notice if unquote(notice.path) == unquote(request.url.path) else None
