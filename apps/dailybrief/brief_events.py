"""Brief events: events with their articles, for the pages and the editions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from apps.dailybrief.tables import Cluster, ClusterArticle, RawArticle


@dataclass(frozen=True, kw_only=True)
class Event:
    """An event and its articles, the earliest first."""

    cluster: Cluster
    articles: tuple[RawArticle, ...]

    @property
    def sources(self) -> list[str]:
        """The names of the sources, in the order of their first articles."""
        return list(dict.fromkeys(article.source for article in self.articles))

    def positions(self) -> list[tuple[RawArticle, float]]:
        """Each article with its position on the timeline, from 0 (the first) to 1 (the last)."""
        first, last = self.articles[0].published_at, self.articles[-1].published_at
        length = (last - first) or timedelta(seconds=1)
        return [(article, (article.published_at - first) / length) for article in self.articles]


def get(session: Session, cluster_id: int) -> Event | None:
    cluster = session.get(Cluster, cluster_id)
    if cluster is None:
        return None
    return next(iter(_with_articles(session, [cluster])), None)


def of_ids(session: Session, cluster_ids: Sequence[int]) -> list[Event]:
    """The events with these ids, in this order; deleted events are left out."""
    found = session.scalars(select(Cluster).where(Cluster.id.in_(cluster_ids))).all()
    by_id = {event.cluster.id: event for event in _with_articles(session, found)}
    return [by_id[each] for each in cluster_ids if each in by_id]


def _with_articles(session: Session, clusters: Sequence[Cluster]) -> list[Event]:
    linked = (
        select(ClusterArticle.cluster_id, RawArticle)
        .join(RawArticle, RawArticle.id == ClusterArticle.raw_article_id)
        .where(ClusterArticle.cluster_id.in_([cluster.id for cluster in clusters]))
        .order_by(RawArticle.published_at, RawArticle.url)
    )
    articles: dict[int, list[RawArticle]] = {}
    for cluster_id, article in session.execute(linked):
        articles.setdefault(cluster_id, []).append(article)
    return [
        Event(cluster=cluster, articles=tuple(articles[cluster.id])) for cluster in clusters if cluster.id in articles
    ]


def day_of(now: datetime, zone: ZoneInfo) -> date:
    return now.astimezone(zone).date()


def span_of(day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The start and the end of a day in a time zone; 23 to 25 hours apart."""
    begin = datetime.combine(day, time(), tzinfo=zone)
    return begin, datetime.combine(day + timedelta(days=1), time(), tzinfo=zone)


def to_json(event: Event) -> dict[str, Any]:
    return {
        "id": event.cluster.id,
        "title": event.cluster.title,
        "summary": event.cluster.summary,
        "article_count": event.cluster.article_count,
        "sources": event.sources,
        "first_at": event.cluster.first_at.isoformat(),
        "last_at": event.cluster.last_at.isoformat(),
        "articles": [
            {
                "title": article.title,
                "url": article.url,
                "source": article.source,
                "summary": article.summary,
                "published_at": article.published_at.isoformat(),
            }
            for article in event.articles
        ],
    }
