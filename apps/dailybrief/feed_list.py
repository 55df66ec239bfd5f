"""Feed list: adds, removes and lists the feeds. An invalid URL is refused when it is added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from apps.dailybrief.feeds import feed_address
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Feed, RawArticle


class UnknownFeed(Exception):
    """The feed does not exist or was removed."""

    code = "feed_not_found"


@dataclass(frozen=True, kw_only=True)
class ListedFeed:
    """A feed and the number of its articles."""

    feed: Feed
    articles: int


def add(session: Session, url: str, settings: Settings, *, now: datetime, title: str = "") -> tuple[Feed, bool]:
    """Add a feed, or restore a removed one; return it, and whether the list has changed.

    Raises BadAddress if the URL is invalid. The IP addresses behind its host name are checked at every fetch.
    """
    checked = feed_address(url, settings)
    feed = session.scalar(select(Feed).where(Feed.url == checked))
    if feed is None:
        feed = Feed(url=checked, title=title, added_at=now)
        session.add(feed)
        session.flush()
        return feed, True
    restored, feed.removed_at = feed.removed_at is not None, None
    return feed, restored


def remove(session: Session, feed_id: int, *, now: datetime) -> Feed:
    """Stop reading a feed. Its articles and the editions stay."""
    feed = session.get(Feed, feed_id)
    if feed is None or feed.removed_at is not None:
        raise UnknownFeed(f"feed {feed_id} does not exist or was removed")
    feed.removed_at = now
    return feed


def list_feeds(session: Session) -> Sequence[ListedFeed]:
    """All feeds that are not removed: those with errors first, then by title."""
    counts = select(RawArticle.feed_id, func.count().label("articles")).group_by(RawArticle.feed_id).subquery()
    query = (
        select(Feed, func.coalesce(counts.c.articles, 0))
        .outerjoin(counts, counts.c.feed_id == Feed.id)
        .where(Feed.removed_at.is_(None))
        .order_by(Feed.error.is_(None), Feed.title, Feed.url)
    )
    return [ListedFeed(feed=feed, articles=articles) for feed, articles in session.execute(query).tuples()]
