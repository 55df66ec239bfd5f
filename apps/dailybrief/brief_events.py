"""Brief events: events with their articles, as the pages show them."""

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
class Story:
    """An event and what reports it, the earliest first."""

    cluster: Cluster
    articles: tuple[RawArticle, ...]

    @property
    def sources(self) -> list[str]:
        """Who reports it, in the order in which they did."""
        return list(dict.fromkeys(article.source for article in self.articles))

    def places(self) -> list[tuple[RawArticle, float]]:
        """Each article with its place on a line from the first to the last, 0 to 1."""
        first, last = self.articles[0].published_at, self.articles[-1].published_at
        length = (last - first) or timedelta(seconds=1)
        return [(article, (article.published_at - first) / length) for article in self.articles]


def get(session: Session, cluster_id: int) -> Story | None:
    cluster = session.get(Cluster, cluster_id)
    if cluster is None:
        return None
    return next(iter(_with_articles(session, [cluster])), None)


def of_ids(session: Session, cluster_ids: Sequence[int]) -> list[Story]:
    """These events, in this order; those that are gone are left out."""
    found = session.scalars(select(Cluster).where(Cluster.id.in_(cluster_ids))).all()
    by_id = {story.cluster.id: story for story in _with_articles(session, found)}
    return [by_id[each] for each in cluster_ids if each in by_id]


def _with_articles(session: Session, clusters: Sequence[Cluster]) -> list[Story]:
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
        Story(cluster=cluster, articles=tuple(articles[cluster.id])) for cluster in clusters if cluster.id in articles
    ]


def day_of(now: datetime, zone: ZoneInfo) -> date:
    return now.astimezone(zone).date()


def span_of(day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """When a day begins and ends by the clock of a zone; 23 to 25 hours apart."""
    begin = datetime.combine(day, time(), tzinfo=zone)
    return begin, datetime.combine(day + timedelta(days=1), time(), tzinfo=zone)


def told(story: Story) -> dict[str, Any]:
    """As JSON."""
    return {
        "id": story.cluster.id,
        "title": story.cluster.title,
        "summary": story.cluster.summary,
        "article_count": story.cluster.article_count,
        "sources": story.sources,
        "first_at": story.cluster.first_at.isoformat(),
        "last_at": story.cluster.last_at.isoformat(),
        "articles": [
            {
                "title": article.title,
                "url": article.url,
                "source": article.source,
                "summary": article.summary,
                "published_at": article.published_at.isoformat(),
            }
            for article in story.articles
        ],
    }
