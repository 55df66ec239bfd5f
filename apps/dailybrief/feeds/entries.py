"""Entries: what the formats have in common, before anything is made of it. All text is as the feed has it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One item of a feed.

    links       where it may be read, the best first
    substitutes addresses that belong to it but are not where it is read (an API's, a sound file's), the best first
    base        where its relative links begin
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
    """A feed as it is written."""

    title: str
    link: str
    entries: tuple[Entry, ...]


class BadFeed(Exception):
    """The document is no feed, or can't be read; `code` says which."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
