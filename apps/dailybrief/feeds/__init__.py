"""Feeds: fetching them, reading them, and storing the articles that they bring.

    from apps.dailybrief.feeds import ingest

    counts = ingest(database, settings, check=ctx.check)     # every feed that is due, once
    counts["rows"]                                          # articles that are new

Before a feed is added: `feed_address(text, settings)` gives its address in the form to keep, or raises
`check_url.BadAddress` with a code and a message for the user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apps.shared.database import Database

# What they need is imported by them: the processes that read feeds come through here, and need little.


def ingest(
    database: Database,
    settings: object,
    *,
    check: Callable[[], None] | None = None,
    written: Callable[[int], None] = lambda rows: None,
) -> dict[str, Any]:
    """Read every feed that is due, and store its new articles. `check` is called often, and may raise to end it.
    `written` is told, after each feed, how many new articles have been stored so far.

    The counts: feeds, waiting (left alone because they keep failing), fetched, not_modified, failed; of articles new,
    duplicates, outdated, unusable (entries that are none); `rows` is `new`. `faults` has feed_id, url, code and message
    of each failure.
    """
    from dataclasses import asdict

    from apps.dailybrief.feeds.ingestion import proceed, read_all
    from apps.dailybrief.feeds.limits import Limits

    done = read_all(database, Limits.like(settings), check=check or proceed, written=written)
    return {**asdict(done), "rows": done.new}


def feed_address(text: str, settings: object) -> str:
    """The address of a feed that a user wants to add; or BadAddress. Nothing is asked of the network."""
    from apps.dailybrief.feeds.check_url import checked
    from apps.dailybrief.feeds.limits import Limits

    return checked(text, Limits.like(settings))
