"""Limits: the largest documents that are read. A larger document is refused; it is never read in part."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one document.

    characters  of all pages together
    unpacked    bytes of a DOCX after unpacking
    parts       files in a DOCX, or parts of a message
    depth       levels of messages and parts within a message
    """

    pages: int = 500
    characters: int = 2_000_000
    unpacked: int = 100_000_000
    parts: int = 2_000
    depth: int = 5
