"""Ranking: which events matter most, by how many sources report them and how fresh they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import exp2, log2

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from apps.dailybrief.tables import ClusterArticle, RawArticle

HALF_LIFE = timedelta(hours=12)
"""An event whose latest report is this much older needs the square of the sources, about, to stand as high."""


@dataclass(frozen=True)
class Standing:
    """What speaks for an event: of the span that is looked at, not of all its life."""

    cluster_id: int
    sources: int
    articles: int
    last_at: datetime

    def worth(self, as_of: datetime) -> float:
        """Each doubling of the sources adds the same; a source that repeats itself adds a little."""
        age = max(as_of - self.last_at, timedelta(0)) / HALF_LIFE
        return round((log2(1 + self.sources) + 0.1 * log2(1 + self.articles)) * exp2(-age), 9)


def rank(standings: Iterable[Standing], *, as_of: datetime) -> list[Standing]:
    """The most important first; of two alike the one with more sources, then the newer, then the older event."""
    return sorted(
        standings, key=lambda one: (-one.worth(as_of), -one.sources, -one.last_at.timestamp(), one.cluster_id)
    )


def between(session: Session, begin: datetime, end: datetime) -> list[Standing]:
    """The standing of every event that was reported from `begin` until before `end`."""
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
    return [Standing(row.cluster_id, row.sources, row.articles, row.last_at) for row in rows]
