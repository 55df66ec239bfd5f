"""Limits: how much time and space a feed may take, and how often it is requested."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The defaults suit feeds from unknown sources.

    fetch_timeout    for one feed with all its redirects; waiting for other requests to the same host does not count
    connect_timeout  for one connection, including name resolution
    read_timeout     until the next byte arrives
    parse_timeout    CPU time for one document
    max_feed_bytes   the size before and after decompression
    retain_articles  older articles are not stored, because retention would delete them
    retry_after      the delay after a failed fetch, which doubles with each failure up to `retry_at_most`
    """

    user_agent: str = "dailybrief/1.0"
    fetch_timeout: timedelta = timedelta(seconds=20)
    connect_timeout: timedelta = timedelta(seconds=5)
    read_timeout: timedelta = timedelta(seconds=10)
    parse_timeout: timedelta = timedelta(seconds=10)
    fetch_concurrency: int = 16
    host_pause: timedelta = timedelta(seconds=1)
    max_feed_bytes: int = 5_000_000
    max_redirects: int = 5
    max_articles_per_feed: int = 200
    allow_private_addresses: bool = False
    retain_articles: timedelta = timedelta(days=30)
    retry_after: timedelta = timedelta(minutes=5)
    retry_at_most: timedelta = timedelta(hours=6)

    @classmethod
    def from_settings(cls, settings: object) -> Self:
        """Take the value of every attribute that `settings` has under the same name."""
        given: dict[str, Any] = {
            field.name: getattr(settings, field.name) for field in fields(cls) if hasattr(settings, field.name)
        }
        return cls(**given)
