"""Limits: how much a fetch may take, and how politely it asks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The defaults are for feeds of strangers.

    fetch_timeout    all hops of one feed together, without the time that it waits for its turn at a host
    connect_timeout  one connection, with the name's resolution; read_timeout: until the next byte comes
    parse_timeout    work of the processor on one document
    max_feed_bytes   as it comes, and again after decompression
    retain_articles  what is older is not taken in: it would be deleted again
    retry_after      how long a feed that failed is left alone: twice as long each time, at most `retry_at_most`
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
    def like(cls, settings: object) -> Self:
        """With the values of every attribute that `settings` has by the same name."""
        given: dict[str, Any] = {
            field.name: getattr(settings, field.name) for field in fields(cls) if hasattr(settings, field.name)
        }
        return cls(**given)
