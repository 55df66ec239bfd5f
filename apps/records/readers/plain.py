"""Plain text: form feeds separate the pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apps.records.file_types import encoding_of
from apps.records.readers.limits import Limits
from apps.records.unreadable import Unreadable


def read(path: Path, limits: Limits) -> Iterator[str]:
    if path.stat().st_size > limits.characters * 4:
        raise Unreadable("TOO_LARGE", f"the document exceeds the limit of {limits.characters:,} characters")
    data = path.read_bytes()
    if not data.strip():
        raise Unreadable("EMPTY", "the file is empty")
    encoding = encoding_of(data, whole=True)
    if encoding is None:
        raise Unreadable("CORRUPT", "the file is not text in UTF-8, UTF-16 or Windows-1252; save it as UTF-8")
    yield from data.decode(encoding).split("\f")
