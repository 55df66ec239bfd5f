"""Entries: the parsed content of a feed in any format. Texts are unchanged: neither sanitised nor shortened."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One item of a feed.

    links        URLs of the article, the best first
    substitutes  other URLs, such as that of an audio file, which are used if the entry has no link
    base         the base URL of its relative links
    """

    id: str
    links: tuple[str, ...]
    title: str
    summary: str
    content: str
    author: str
    source: str
    dates: tuple[datetime, ...]
    base: str
    substitutes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Document:
    """A parsed feed."""

    title: str
    link: str
    entries: tuple[Entry, ...]


class BadFeed(Exception):
    """The document is not a feed, or can't be parsed; `code` says which."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
