"""Editions: the brief of a day, published once and never changed.

Today's brief changes with every article. An edition is the brief at the time of its publication. The database has at
most one per day and time zone, and refuses to change or delete it. Retention keeps the articles and events in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from hashlib import sha256
from zoneinfo import ZoneInfo

from sqlalchemy import insert
from sqlalchemy.orm import Session

from apps.dailybrief import brief_events, brief_formats
from apps.dailybrief.brief_events import Event
from apps.dailybrief.brief_formats import Brief, BriefArticle, BriefEvent
from apps.dailybrief.events import ranking, summaries
from apps.dailybrief.events.clustering import INSERT, lock_clusters
from apps.dailybrief.events.grouping import Report
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Edition, EditionArticle, RawArticle
from apps.shared.database import Database


class DayNotBegun(Exception):
    """The day is in the future; nothing was published, because an edition can't be changed later."""

    code = "day_not_begun"


def events_of_today(session: Session, settings: Settings, *, now: datetime) -> list[Event]:
    """The events of today, the most important first."""
    begin, end = brief_events.span_of(brief_events.day_of(now, settings.zone), settings.zone)
    return _ranked_events(session, settings, begin, end, as_of=now)


def publish(
    database: Database,
    settings: Settings,
    *,
    day: date,
    now: datetime | None = None,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> dict[str, int]:
    """Publish the brief of a day unless it is published already. Safe to call again and concurrently.

    `on_progress` is called after the commit with the number of articles in the edition.

    publish(database, settings, day=date(2025, 11, 3))      # {"rows": 42, "published": 1, "events": 12, "articles": 42}
    publish(database, settings, day=date(2025, 11, 3))      # {"rows": 0, "published": 0, "events": 0, "articles": 0}
    """
    now, (begin, end) = now or datetime.now(UTC), brief_events.span_of(day, settings.zone)
    if begin > now:
        raise DayNotBegun(f"{day} has not begun in {settings.timezone}; publish it on that day or later")
    with database.write() as session:
        lock_clusters(session)  # keeps retention from deleting the articles and events in the edition
        events = [_before(event, end) for event in _ranked_events(session, settings, begin, end, as_of=end)]
        brief = Brief(day, settings.zone, tuple(_brief_event(event) for event in events))
        edition_id = _store(session, brief, settings.zone, now=now)
        if edition_id is None:
            return {"rows": 0, "published": 0, "events": 0, "articles": 0}
        articles = [(event.cluster.id, article.id) for event in events for article in event.articles]
        rows = [
            {"edition_id": edition_id, "raw_article_id": article_id, "cluster_id": cluster_id, "position": position}
            for position, (cluster_id, article_id) in enumerate(articles, 1)
        ]
        if rows:
            session.execute(insert(EditionArticle), rows)
    on_progress(len(rows))
    return {"rows": len(rows), "published": 1, "events": len(events), "articles": len(rows)}


def _ranked_events(
    session: Session, settings: Settings, begin: datetime, end: datetime, *, as_of: datetime
) -> list[Event]:
    ranked = ranking.rank(ranking.coverage_between(session, begin, end), as_of=as_of)
    return brief_events.of_ids(session, [one.cluster_id for one in ranked[: settings.brief_events]])


def _before(event: Event, end: datetime) -> Event:
    """The event with only the articles published before `end`."""
    return replace(event, articles=tuple(article for article in event.articles if article.published_at < end))


def _brief_event(event: Event) -> BriefEvent:
    reports = {_report(article): article for article in event.articles}
    return BriefEvent(
        id=event.cluster.id,
        title=summaries.headline(list(reports)),
        sentence=summaries.sentence(list(reports)),
        articles=tuple(_article(article) for article in event.articles),
        timeline=tuple(_article(reports[moment]) for moment in summaries.moments(list(reports))),
    )


def _report(article: RawArticle) -> Report:
    return Report(article.url, article.published_at, article.title, article.summary)


def _article(article: RawArticle) -> BriefArticle:
    title = summaries.cut(article.title) or "(untitled)"
    return BriefArticle(title, summaries.cut(article.source, 100), article.url, article.published_at)


def _store(session: Session, brief: Brief, zone: ZoneInfo, *, now: datetime) -> int | None:
    """Insert the edition and return its id, or None if there already is an edition of this day and zone."""
    texts = {
        "markdown": brief_formats.markdown(brief),
        "html": brief_formats.html(brief),
        "json_feed": brief_formats.json_feed(brief),
    }
    statement = (
        INSERT[session.get_bind().dialect.name](Edition)
        .values(day=brief.day, time_zone=zone.key, published_at=now, title=brief.title, sha256=digest(**texts), **texts)
        .on_conflict_do_nothing()
        .returning(Edition.id)
    )
    found: int | None = session.scalar(statement)
    return found


def digest(*, markdown: str, html: str, json_feed: str) -> str:
    """Return the value of `editions.sha256`: the hash of the formats in this order, with zero bytes between them."""
    return sha256("\0".join((markdown, html, json_feed)).encode()).hexdigest()
