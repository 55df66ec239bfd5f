"""Response body: reads the body of a response with a size limit, before and after decompression."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

GZIP = b"\x1f\x8b"
ACCEPTED = "gzip, deflate"
"""Encodings that can be decompressed with a size limit."""


class BadBody(Exception):
    """The body can't be used; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def read(chunks: Iterable[bytes], *, encoding: str, length: str, limit: int) -> bytes:
    """The whole body, decompressed. Raises BadBody as soon as it exceeds `limit`."""
    if length.isdecimal() and int(length) > limit:
        raise _too_large(limit)
    raw = bytearray()
    for chunk in chunks:
        raw += chunk
        if len(raw) > limit:
            raise _too_large(limit)
    return _decompress(bytes(raw), encoding.strip().lower(), limit)


def _decompress(raw: bytes, encoding: str, limit: int) -> bytes:
    # Look at the bytes, not at the header: some servers send gzip without the header, or plain text with it.
    if raw.startswith(GZIP):
        return _inflate(raw, limit, wbits=16 + zlib.MAX_WBITS)
    match encoding:
        case "" | "identity" | "gzip" | "x-gzip":
            return raw
        case "deflate":
            # The standard requires a zlib header, but some servers leave it out.
            wrapped = len(raw) >= 2 and raw[0] & 0x0F == 8 and int.from_bytes(raw[:2], "big") % 31 == 0
            return _inflate(raw, limit, wbits=zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        case other:
            raise BadBody("bad_encoding", f"the response has the unsupported encoding {other[:40]!r}")


def _inflate(raw: bytes, limit: int, *, wbits: int) -> bytes:
    out = bytearray()
    while raw:
        member = zlib.decompressobj(wbits)
        try:
            out += member.decompress(raw, limit + 1 - len(out))
        except zlib.error as error:
            raise BadBody("bad_encoding", f"the response can't be decompressed: {error}") from None
        if len(out) > limit:
            raise _too_large(limit)
        if not member.eof:
            raise BadBody("bad_encoding", "the compressed response is incomplete")
        # Several gzip members may follow each other; anything else is padding.
        raw = member.unused_data if member.unused_data.startswith(GZIP) else b""
    return bytes(out)


def _too_large(limit: int) -> BadBody:
    return BadBody("too_large", f"the feed is larger than {limit:,} bytes")
