"""Store articles: what a reading of a feed leaves in the database.

Each feed is written in a short transaction of its own: its articles together with the validators that they came with.
So a feed that says 'not modified' next time has nothing that we don't have. That an article is there already, only the
database decides, by its unique URL: two readings at once lose nothing and write nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import CursorResult, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from apps.dailybrief.feeds.fetch import Failed, Fetched, NotModified
from apps.dailybrief.feeds.limits import Limits
from apps.dailybrief.feeds.parse import Article, Parsed
from apps.dailybrief.tables import Feed, ForgottenArticle, RawArticle

INSERTS: dict[str, Callable[..., Any]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
LONGEST_ERROR = 500


@dataclass(frozen=True, kw_only=True)
class Known:
    """A feed as it stood when the reading began."""

    id: int
    url: str
    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, kw_only=True)
class Read:
    """A feed that came and could be read."""

    fetched: Fetched
    parsed: Parsed


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How one feed went, and when."""

    feed: Known
    at: datetime
    outcome: Read | NotModified | Failed


@dataclass(frozen=True, kw_only=True)
class Stored:
    """How many of its articles are new, how many were there already, and how many are too old to take in."""

    new: int = 0
    duplicates: int = 0
    outdated: int = 0


def due(session: Session, limits: Limits, *, at: datetime) -> tuple[list[Known], int]:
    """The feeds to read now, and how many are left alone for a while because they keep failing."""
    feeds = session.scalars(select(Feed).where(Feed.removed_at.is_(None)).order_by(Feed.id)).all()
    ready = [feed for feed in feeds if _rest(feed.failures, limits) <= at - (feed.last_fetch_at or feed.added_at)]
    known = [Known(id=feed.id, url=feed.url, etag=feed.etag, last_modified=feed.last_modified) for feed in ready]
    return known, len(feeds) - len(ready)


def store(session: Session, reading: Reading, limits: Limits) -> Stored:
    """Write how it went; nothing if the feed was removed meanwhile."""
    match reading.outcome:
        case Read(fetched=fetched, parsed=parsed):
            known = _note(
                session,
                reading,
                **_success(reading.at, fetched.status),
                etag=fetched.etag,
                last_modified=fetched.last_modified,
                site_url=parsed.site_url,
            )
            if not known:
                return Stored()
            _name(session, reading.feed, parsed.title)
            earliest = reading.at - limits.retain_articles
            gone = _forgotten(session, [one.url for one in parsed.articles if one.published_at == reading.at])
            recent = [one for one in parsed.articles if one.published_at >= earliest and one.url not in gone]
            new = _insert(session, reading, recent)
            return Stored(new=new, duplicates=len(recent) - new, outdated=len(parsed.articles) - len(recent))
        case NotModified(status=status):
            _note(session, reading, **_success(reading.at, status))
        case Failed(code=code, message=message, status=status):
            error = {"error_code": code, "error": message[:LONGEST_ERROR], "last_status": status}
            _note(session, reading, failures=Feed.failures + 1, **error)
    return Stored()


def _rest(failures: int, limits: Limits) -> timedelta:
    """How long a feed is left alone after so many failures in a row."""
    if failures == 0:
        return timedelta.min
    doubled: int = 2 ** min(failures - 1, 20)
    return min(limits.retry_after * doubled, limits.retry_at_most)


def _success(at: datetime, status: int) -> dict[str, Any]:
    return {"last_success_at": at, "last_status": status, "failures": 0, "error_code": None, "error": None}


def _note(session: Session, reading: Reading, **values: Any) -> bool:
    """Write it on the feed; False if it was removed."""
    statement = update(Feed).where(Feed.id == reading.feed.id, Feed.removed_at.is_(None))
    result = session.execute(statement.values(last_fetch_at=reading.at, **values))
    assert isinstance(result, CursorResult)
    return result.rowcount == 1


def _name(session: Session, feed: Known, title: str) -> None:
    """A feed without a name is called what it calls itself."""
    session.execute(update(Feed).where(Feed.id == feed.id, Feed.title == "").values(title=title))


def _forgotten(session: Session, undated: Sequence[str]) -> set[str]:
    """Which of these articles, of which the feed says no date, were here before and have been deleted."""
    return set(session.scalars(select(ForgottenArticle.url).where(ForgottenArticle.url.in_(undated))))


def _insert(session: Session, reading: Reading, articles: Sequence[Article]) -> int:
    """How many of them were not there."""
    insert = INSERTS[session.get_bind().dialect.name]
    # All in the same order, or two readings with the same articles would wait for each other for ever.
    rows = [
        {**asdict(article), "feed_id": reading.feed.id, "fetched_at": reading.at}
        for article in sorted(articles, key=lambda article: article.url)
    ]
    if not rows:
        return 0
    statement = insert(RawArticle).on_conflict_do_nothing(index_elements=["url"]).returning(RawArticle.id)
    return len(session.execute(statement, rows).all())
