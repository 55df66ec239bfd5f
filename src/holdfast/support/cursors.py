"""Cursors: opaque texts that mark where the next page of a list begins. A changed cursor is refused."""

from __future__ import annotations

import base64
import binascii
import json

from holdfast.support import json_text
from holdfast.support.errors import InvalidArguments

Part = str | int | None
MAX_LENGTH = 400


def write(purpose: str, *parts: Part) -> str:
    """Encode the parts as a text that `read` decodes."""
    body = base64.urlsafe_b64encode(json_text.compact(list(parts)).encode()).decode().rstrip("=")
    return f"{body}.{_seal(purpose, body)}"


def read(text: object, purpose: str) -> tuple[Part, ...]:
    """Return the parts of a cursor that was written for this purpose, or raise InvalidArguments."""
    if isinstance(text, str) and len(text) <= MAX_LENGTH and text.isascii():
        body, _, seal = text.partition(".")
        if seal == _seal(purpose, body):
            try:
                return tuple(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))
            except (binascii.Error, ValueError, TypeError):
                pass  # the checksum matches by chance
    raise InvalidArguments("not a cursor of this list: pass a cursor exactly as the list returned it")


def _seal(purpose: str, body: str) -> str:
    return json_text.digest("cursor", purpose, body, size=4)
