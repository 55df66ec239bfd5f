"""Store articles: stores the result of reading one feed.

Each feed is stored in its own short transaction: its articles together with the validators of the response. So no
article is missing when the server answers "not modified" next time. The unique URL in the database decides whether an
article is new, so two concurrent jobs neither lose an article nor store one twice.
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
class FeedState:
    """A feed at the start of the job."""

    id: int
    url: str
    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, kw_only=True)
class ReadFeed:
    """A feed that was fetched and parsed."""

    fetched: Fetched
    parsed: Parsed


@dataclass(frozen=True, kw_only=True)
class FeedResult:
    """The result of reading one feed, and its time."""

    feed: FeedState
    at: datetime
    outcome: ReadFeed | NotModified | Failed


@dataclass(frozen=True, kw_only=True)
class Stored:
    """How many articles of a feed are new, already stored, and too old to be stored."""

    new: int = 0
    duplicates: int = 0
    outdated: int = 0


def due_feeds(session: Session, limits: Limits, *, at: datetime) -> tuple[list[FeedState], int]:
    """The feeds to read now, and the number of feeds that are skipped for a while because they failed."""
    feeds = session.scalars(select(Feed).where(Feed.removed_at.is_(None)).order_by(Feed.id)).all()
    due = [feed for feed in feeds if _retry_delay(feed.failures, limits) <= at - (feed.last_fetch_at or feed.added_at)]
    states = [FeedState(id=feed.id, url=feed.url, etag=feed.etag, last_modified=feed.last_modified) for feed in due]
    return states, len(feeds) - len(due)


def store(session: Session, result: FeedResult, limits: Limits) -> Stored:
    """Store the result; do nothing if the feed was removed meanwhile."""
    match result.outcome:
        case ReadFeed(fetched=fetched, parsed=parsed):
            exists = _update_feed(
                session,
                result,
                **_success(result.at, fetched.status),
                etag=fetched.etag,
                last_modified=fetched.last_modified,
                site_url=parsed.site_url,
            )
            if not exists:
                return Stored()
            _set_title(session, result.feed, parsed.title)
            earliest = result.at - limits.retain_articles
            deleted = _forgotten(session, [one.url for one in parsed.articles if one.published_at == result.at])
            recent = [one for one in parsed.articles if one.published_at >= earliest and one.url not in deleted]
            new = _insert(session, result, recent)
            return Stored(new=new, duplicates=len(recent) - new, outdated=len(parsed.articles) - len(recent))
        case NotModified(status=status):
            _update_feed(session, result, **_success(result.at, status))
        case Failed(code=code, message=message, status=status):
            error = {"error_code": code, "error": message[:LONGEST_ERROR], "last_status": status}
            _update_feed(session, result, failures=Feed.failures + 1, **error)
    return Stored()


def _retry_delay(failures: int, limits: Limits) -> timedelta:
    """How long a feed is skipped after this many failures in a row."""
    if failures == 0:
        return timedelta.min
    doubled: int = 2 ** min(failures - 1, 20)
    return min(limits.retry_after * doubled, limits.retry_at_most)


def _success(at: datetime, status: int) -> dict[str, Any]:
    return {"last_success_at": at, "last_status": status, "failures": 0, "error_code": None, "error": None}


def _update_feed(session: Session, result: FeedResult, **values: Any) -> bool:
    """Update the row of the feed; False if the feed was removed."""
    statement = update(Feed).where(Feed.id == result.feed.id, Feed.removed_at.is_(None))
    updated = session.execute(statement.values(last_fetch_at=result.at, **values))
    assert isinstance(updated, CursorResult)
    return updated.rowcount == 1


def _set_title(session: Session, feed: FeedState, title: str) -> None:
    """Give the feed the title of its document, unless it has a title already."""
    session.execute(update(Feed).where(Feed.id == feed.id, Feed.title == "").values(title=title))


def _forgotten(session: Session, undated: Sequence[str]) -> set[str]:
    """Return the undated articles that retention has deleted."""
    return set(session.scalars(select(ForgottenArticle.url).where(ForgottenArticle.url.in_(undated))))


def _insert(session: Session, result: FeedResult, articles: Sequence[Article]) -> int:
    """Insert the articles; return how many were new."""
    insert = INSERTS[session.get_bind().dialect.name]
    # Always in the same order: two transactions with the same articles could deadlock otherwise.
    rows = [
        {**asdict(article), "feed_id": result.feed.id, "fetched_at": result.at}
        for article in sorted(articles, key=lambda article: article.url)
    ]
    if not rows:
        return 0
    statement = insert(RawArticle).on_conflict_do_nothing(index_elements=["url"]).returning(RawArticle.id)
    return len(session.execute(statement, rows).all())
