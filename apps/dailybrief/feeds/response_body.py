"""Response body: read within a limit that holds before and after decompression."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

GZIP = b"\x1f\x8b"
ACCEPTED = "gzip, deflate"
"""Encodings that we ask for and can bound."""


class BadBody(Exception):
    """What came can't be used; `code` says why in one word."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def read(chunks: Iterable[bytes], *, encoding: str, length: str, limit: int) -> bytes:
    """The whole body, decompressed; or BadBody as soon as it is known to be larger than `limit`."""
    if length.isdecimal() and int(length) > limit:
        raise _too_large(limit)
    raw = bytearray()
    for chunk in chunks:
        raw += chunk
        if len(raw) > limit:
            raise _too_large(limit)
    return _decompress(bytes(raw), encoding.strip().lower(), limit)


def _decompress(raw: bytes, encoding: str, limit: int) -> bytes:
    # By what it is, not by its label: servers send a `feed.xml.gz` without a label, and plain text with one.
    if raw.startswith(GZIP):
        return _inflate(raw, limit, wbits=16 + zlib.MAX_WBITS)
    match encoding:
        case "" | "identity" | "gzip" | "x-gzip":
            return raw
        case "deflate":
            # By the standard it has a zlib header; some servers leave it out.
            wrapped = len(raw) >= 2 and raw[0] & 0x0F == 8 and int.from_bytes(raw[:2], "big") % 31 == 0
            return _inflate(raw, limit, wbits=zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        case other:
            raise BadBody("bad_encoding", f"it is compressed as {other[:40]!r}, which was not asked for")


def _inflate(raw: bytes, limit: int, *, wbits: int) -> bytes:
    out = bytearray()
    while raw:
        member = zlib.decompressobj(wbits)
        try:
            out += member.decompress(raw, limit + 1 - len(out))
        except zlib.error as error:
            raise BadBody("bad_encoding", f"it can't be decompressed: {error}") from None
        if len(out) > limit:
            raise _too_large(limit)
        if not member.eof:
            raise BadBody("bad_encoding", "it ends in the middle of what was compressed")
        # Several members may follow each other; what is no member is padding.
        raw = member.unused_data if member.unused_data.startswith(GZIP) else b""
    return bytes(out)


def _too_large(limit: int) -> BadBody:
    return BadBody("too_large", f"it is larger than {limit:,} bytes")
