"""Flash messages: a page shows the result of an action once, after the redirect.

The message travels in a cookie and never in the URL, so that a link can't put text into a page.
"""

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
LASTS = 10  # seconds within which the redirected page must load


@dataclass(frozen=True)
class Notice:
    """A message for one page; `bad` if the action failed."""

    path: str
    text: str
    bad: bool


@dataclass(frozen=True)
class Redirect:
    """The message of an action that redirects to a different page than usual."""

    text: str
    path: str


def act(request: Request, path: str, action: Callable[[], str | Redirect]) -> Response:
    """Perform an action and redirect to a page that shows the returned message, or the error."""
    bad = False
    try:
        done = action()
        text, path = (done.text, done.path) if isinstance(done, Redirect) else (done, path)
    except HoldfastError as error:
        text, bad = str(error), True
    notice = Notice(path.partition("?")[0], text[:LONGEST], bad)
    response = RedirectResponse(path, 303)
    packed = base64.urlsafe_b64encode(json.dumps(asdict(notice)).encode()).decode()
    response.set_cookie(
        COOKIE, packed, max_age=LASTS, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return response


def flash(request: Request) -> Notice | None:
    """Return the message for this page, if there is one."""
    packed = request.cookies.get(COOKIE)
    if not packed or "hx-request" in request.headers:
        return None
    try:
        notice = Notice(**json.loads(base64.urlsafe_b64decode(packed)))
    except (binascii.Error, ValueError, TypeError):
        return None
    return notice if unquote(notice.path) == unquote(request.url.path) else None
