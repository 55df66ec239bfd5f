"""Limits: how much of a file is read. What is larger is refused, not cut: half of a document is not the document."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """characters are those of all pages together; unpacked are the bytes that an archive may grow to."""

    pages: int = 500
    characters: int = 2_000_000
    unpacked: int = 100_000_000
    parts: int = 2_000
    depth: int = 5
