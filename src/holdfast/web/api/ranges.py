"""Ranges: which part of a file is asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANGE = re.compile(r"\s*bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*")


@dataclass(frozen=True)
class Range:
    """`size` bytes from byte `first` on; a size of 0 is a part that the file does not have."""

    first: int
    size: int


def asked_range(header: str | None, size: int) -> Range | None:
    """The part that a Range header asks for; None, which is all of it, where it asks for none, for several at once, or
    for something that is no range."""
    found = _RANGE.fullmatch(header or "")
    if found is None or not any(found.groups()):
        return None
    first, last = found.groups()
    if not first:
        length = min(int(last), size)
        return Range(size - length, length)
    if last and int(last) < int(first):
        return None
    return Range(int(first), max(0, min(int(last) + 1 if last else size, size) - int(first)))
