"""Editions: the brief of a day, published once and for ever.

Today's brief changes with every article. An edition is the brief at the time of its publication; the database keeps one
for each day and time zone, and refuses to change or delete it. What it refers to is spared by retention.
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
from apps.dailybrief.brief_events import Story
from apps.dailybrief.brief_formats import Brief, BriefArticle, BriefEvent
from apps.dailybrief.events import ranking, summaries
from apps.dailybrief.events.clustering import INSERT, take_turn
from apps.dailybrief.events.grouping import Report
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Edition, EditionArticle, RawArticle
from apps.shared.database import Database


class DayNotBegun(Exception):
    """An edition of the future would be empty for ever; nothing was published."""

    code = "day_not_begun"


def today(session: Session, settings: Settings, *, now: datetime) -> list[Story]:
    """The events of today, the most important first."""
    begin, end = brief_events.span_of(brief_events.day_of(now, settings.zone), settings.zone)
    return _most_important(session, settings, begin, end, as_of=now)


def publish(
    database: Database,
    settings: Settings,
    *,
    day: date,
    now: datetime | None = None,
    written: Callable[[int], None] = lambda rows: None,
) -> dict[str, int]:
    """Publish the brief of a day, unless that was done; safe to call again, and twice at once.

    `written` is told how many articles it refers to, once it is published.

    publish(database, settings, day=date(2025, 11, 3))      # {"rows": 42, "published": 1, "events": 12, "articles": 42}
    publish(database, settings, day=date(2025, 11, 3))      # {"rows": 0, "published": 0, "events": 0, "articles": 0}
    """
    now, (begin, end) = now or datetime.now(UTC), brief_events.span_of(day, settings.zone)
    if begin > now:
        raise DayNotBegun(f"{day} has not begun in {settings.timezone}")
    with database.write() as session:
        take_turn(session)  # so that retention takes nothing away while we refer to it
        told = [_until(story, end) for story in _most_important(session, settings, begin, end, as_of=end)]
        brief = Brief(day, settings.zone, tuple(_event(story) for story in told))
        edition_id = _store(session, brief, settings.zone, now=now)
        if edition_id is None:
            return {"rows": 0, "published": 0, "events": 0, "articles": 0}
        referred = [(story.cluster.id, article.id) for story in told for article in story.articles]
        rows = [
            {"edition_id": edition_id, "raw_article_id": article_id, "cluster_id": cluster_id, "position": position}
            for position, (cluster_id, article_id) in enumerate(referred, 1)
        ]
        if rows:
            session.execute(insert(EditionArticle), rows)
    written(len(rows))
    return {"rows": len(rows), "published": 1, "events": len(told), "articles": len(rows)}


def _most_important(
    session: Session, settings: Settings, begin: datetime, end: datetime, *, as_of: datetime
) -> list[Story]:
    standings = ranking.rank(ranking.between(session, begin, end), as_of=as_of)
    return brief_events.of_ids(session, [one.cluster_id for one in standings[: settings.brief_events]])


def _until(story: Story, end: datetime) -> Story:
    """What was known of an event by then."""
    return replace(story, articles=tuple(article for article in story.articles if article.published_at < end))


def _event(story: Story) -> BriefEvent:
    reports = {_report(article): article for article in story.articles}
    return BriefEvent(
        id=story.cluster.id,
        title=summaries.headline(list(reports)),
        sentence=summaries.sentence(list(reports)),
        articles=tuple(_article(article) for article in story.articles),
        timeline=tuple(_article(reports[moment]) for moment in summaries.moments(list(reports))),
    )


def _report(article: RawArticle) -> Report:
    return Report(article.url, article.published_at, article.title, article.summary)


def _article(article: RawArticle) -> BriefArticle:
    title = summaries.cut(article.title) or "(untitled)"
    return BriefArticle(title, summaries.cut(article.source, 100), article.url, article.published_at)


def _store(session: Session, brief: Brief, zone: ZoneInfo, *, now: datetime) -> int | None:
    """The id of the edition, or None if there is one of that day and zone."""
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
    """What `editions.sha256` holds: of the three forms, in this order, with a zero byte between them."""
    return sha256("\0".join((markdown, html, json_feed)).encode()).hexdigest()
