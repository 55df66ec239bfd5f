"""Ranking: orders events by the number of their sources and the age of their latest article."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import exp2, log2

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from apps.dailybrief.tables import ClusterArticle, RawArticle

HALF_LIFE = timedelta(hours=12)
"""The score of an event halves when its latest article is this much older."""


@dataclass(frozen=True)
class Coverage:
    """How many sources and articles reported an event within a time span."""

    cluster_id: int
    sources: int
    articles: int
    last_at: datetime

    def score(self, as_of: datetime) -> float:
        """The importance of the event.

        Each doubling of the sources adds about the same amount; more articles add a little.
        """
        age = max(as_of - self.last_at, timedelta(0)) / HALF_LIFE
        return round((log2(1 + self.sources) + 0.1 * log2(1 + self.articles)) * exp2(-age), 9)


def rank(events: Iterable[Coverage], *, as_of: datetime) -> list[Coverage]:
    """Sort by score; if equal, by more sources, then by the later article, then by the lower id."""
    return sorted(
        events, key=lambda event: (-event.score(as_of), -event.sources, -event.last_at.timestamp(), event.cluster_id)
    )


def coverage_between(session: Session, begin: datetime, end: datetime) -> list[Coverage]:
    """The coverage of every event with an article from `begin` until before `end`."""
    rows = session.execute(
        select(
            ClusterArticle.cluster_id,
            func.count(RawArticle.source.distinct()).label("sources"),
            func.count().label("articles"),
            func.max(RawArticle.published_at).label("last_at"),
        )
        .join(RawArticle, RawArticle.id == ClusterArticle.raw_article_id)
        .where(RawArticle.published_at >= begin, RawArticle.published_at < end)
        .group_by(ClusterArticle.cluster_id)
    )
    return [Coverage(row.cluster_id, row.sources, row.articles, row.last_at) for row in rows]
