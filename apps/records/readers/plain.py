"""Plain text; form feeds divide its pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apps.records.file_types import encoding_of
from apps.records.readers.limits import Limits
from apps.records.unreadable import Unreadable


def read(path: Path, limits: Limits) -> Iterator[str]:
    if path.stat().st_size > limits.characters * 4:
        raise Unreadable("TOO_LARGE", f"it has more than {limits.characters:,} characters")
    data = path.read_bytes()
    if not data.strip():
        raise Unreadable("EMPTY", "there is nothing in it")
    encoding = encoding_of(data, whole=True)
    if encoding is None:
        raise Unreadable("CORRUPT", "it is not text in UTF-8, UTF-16 or Windows-1252")
    yield from data.decode(encoding).split("\f")
