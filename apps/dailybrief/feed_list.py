"""Feed list: the feeds that are read. A wrong address is refused when it is added."""

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
    """There is no such feed, or it was removed."""

    code = "feed_not_found"


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A feed and how many of its articles there are."""

    feed: Feed
    articles: int


def add(session: Session, url: str, settings: Settings, *, now: datetime, title: str = "") -> tuple[Feed, bool]:
    """Read this feed from now on; the feed, and whether it is new. One that was removed comes back as it was.

    BadAddress says what is wrong with it, as far as the address itself tells; where its name leads to is judged at
    every fetch.
    """
    address = feed_address(url, settings)
    feed = session.scalar(select(Feed).where(Feed.url == address))
    if feed is None:
        feed = Feed(url=address, title=title, added_at=now)
        session.add(feed)
        session.flush()
        return feed, True
    back, feed.removed_at = feed.removed_at is not None, None
    return feed, back


def remove(session: Session, feed_id: int, *, now: datetime) -> Feed:
    """Read it no more. Its articles stay, and so does what was published."""
    feed = session.get(Feed, feed_id)
    if feed is None or feed.removed_at is not None:
        raise UnknownFeed(f"there is no feed {feed_id}")
    feed.removed_at = now
    return feed


def listed(session: Session) -> Sequence[Listed]:
    """All that are read, those with errors first, then by name."""
    counts = select(RawArticle.feed_id, func.count().label("articles")).group_by(RawArticle.feed_id).subquery()
    wanted = (
        select(Feed, func.coalesce(counts.c.articles, 0))
        .outerjoin(counts, counts.c.feed_id == Feed.id)
        .where(Feed.removed_at.is_(None))
        .order_by(Feed.error.is_(None), Feed.title, Feed.url)
    )
    return [Listed(feed=feed, articles=articles) for feed, articles in session.execute(wanted).tuples()]
