"""Cursors: where a reader goes on, as a text that means nothing to it and is refused when it was changed."""

from __future__ import annotations

import base64
import binascii
import json

from holdfast.support import json_text
from holdfast.support.errors import InvalidArguments

Part = str | int | None
MOST = 400


def write(purpose: str, *parts: Part) -> str:
    """A text that `read` turns into the same parts."""
    body = base64.urlsafe_b64encode(json_text.compact(list(parts)).encode()).decode().rstrip("=")
    return f"{body}.{_seal(purpose, body)}"


def read(text: object, purpose: str) -> tuple[Part, ...]:
    """The parts of a cursor that was written for this purpose, or InvalidArguments."""
    if isinstance(text, str) and len(text) <= MOST and text.isascii():
        body, _, seal = text.partition(".")
        if seal == _seal(purpose, body):
            try:
                return tuple(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))
            except (binascii.Error, ValueError, TypeError):
                pass  # sealed by no one but chance
    raise InvalidArguments("this is no cursor of such a list: give back one that it gave, whole")


def _seal(purpose: str, body: str) -> str:
    return json_text.digest("cursor", purpose, body, size=4)
