"""Feeds: fetches and parses feeds, and stores their articles.

    from apps.dailybrief.feeds import ingest

    counts = ingest(database, settings, check=ctx.check)     # reads every feed that is due, once
    counts["rows"]                                          # the number of new articles

Before a feed is added, `feed_address(text, settings)` returns its URL in the form to store, or raises
`check_url.BadAddress` with a code and a message for the user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apps.shared.database import Database

# The functions import what they need: parser processes import this package, and should start quickly.


def ingest(
    database: Database,
    settings: object,
    *,
    check: Callable[[], None] | None = None,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> dict[str, Any]:
    """Read every feed that is due and store its new articles.

    `check` is called often and may raise to stop. `on_progress` is called after each feed with the number of new
    articles so far.

    Returns counts of feeds (`feeds`, `waiting`, `fetched`, `not_modified`, `failed`) and of articles (`new`,
    `duplicates`, `outdated`, `unusable`). `waiting` feeds were skipped because they failed recently; `unusable` entries
    have no text. `rows` is the same as `new`. `faults` has the feed_id, url, code and message of each failure.
    """
    from dataclasses import asdict

    from apps.dailybrief.feeds.ingestion import no_check, read_all
    from apps.dailybrief.feeds.limits import Limits

    done = read_all(database, Limits.from_settings(settings), check=check or no_check, on_progress=on_progress)
    return {**asdict(done), "rows": done.new}


def feed_address(text: str, settings: object) -> str:
    """Check the URL of a new feed without using the network; return the form to store, or raise BadAddress."""
    from apps.dailybrief.feeds.check_url import checked_url
    from apps.dailybrief.feeds.limits import Limits

    return checked_url(text, Limits.from_settings(settings))
