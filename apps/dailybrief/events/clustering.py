"""Clustering: assigns every new article to an event and stores the assignment.

    read ──▶ group ──▶ write, unless another process has written since the read ──▶ read again, until no article is left

Reading and grouping hold no lock. Each write transaction is short and complete in itself: after a crash between any two
statements, the next call continues from the last commit. Only one process writes at a time. It first checks that the
latest link is still the one it read, and reads again if not. Constraints of the database ensure that an article has
only one link. A count is increased only when a link is inserted.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, case, func, insert, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from apps.dailybrief.events import summaries
from apps.dailybrief.events.embeddings import best
from apps.dailybrief.events.grouping import Assignment, Report, group
from apps.dailybrief.logs import log_event
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Cluster, ClusterArticle, RawArticle
from apps.shared.database import Database

READ_BATCH = 5000  # articles that are grouped at once
WRITE_BATCH = 200  # articles per transaction
MAX_CONFLICTS = 20  # conflicts in a row without any progress, after which the call fails
DESCRIBED_BY = 50  # the title and sentence of an event come from this many of its earliest articles

INSERT: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
COLLATION = {"sqlite": "BINARY", "postgresql": "C"}  # sorts like Python strings

ADD_ARTICLES = (
    update(Cluster.__table__)  # type: ignore[arg-type]  # it is a Table
    .where(Cluster.id == bindparam("cluster"))
    .values(
        article_count=Cluster.article_count + bindparam("more"),
        first_at=case((Cluster.first_at > bindparam("earliest"), bindparam("earliest")), else_=Cluster.first_at),
        last_at=case((Cluster.last_at < bindparam("latest"), bindparam("latest")), else_=Cluster.last_at),
        updated_at=bindparam("now"),
    )
)
SET_TEXTS = (
    update(Cluster.__table__)  # type: ignore[arg-type]
    .where(Cluster.id == bindparam("cluster"))
    .values(title=bindparam("headline"), summary=bindparam("sentence"))
)


class ConcurrentUpdate(Exception):
    """Another process has written since the read; this transaction wrote nothing."""


@dataclass(frozen=True)
class ClusteringInput:
    """New articles, assigned articles near them in time, the ids of the new articles by URL, and the latest link."""

    new: list[Report]
    known: list[tuple[Report, int]]
    ids: dict[str, int]
    latest_link: int


@dataclass(frozen=True)
class Link:
    """The link of an article to an event; `at` is when the article was published."""

    cluster_id: int
    article_id: int
    at: datetime


@dataclass(frozen=True)
class Counts:
    articles: int = 0
    new_events: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.articles + other.articles, self.new_events + other.new_events)


def cluster(
    database: Database,
    settings: Settings,
    *,
    now: datetime | None = None,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> dict[str, int]:
    """Assign every article without an event. Safe to call again and concurrently.

    `on_progress` is called after each transaction with the number of articles assigned so far.

    Returns how many articles this call assigned (`articles`, also as `rows`) and how many events it created.

        cluster(database, settings)       # {"rows": 37, "articles": 37, "new_events": 12}
    """
    embedding, total, conflicts = best(settings.embedding), Counts(), 0
    if embedding.name != settings.embedding:
        log_event("embedding_missing", level=logging.WARNING, wanted=settings.embedding, used=embedding.name)
    while (found := read(database, settings.cluster_window)).new:
        assignments = group(found.known, found.new, embedding=embedding, window=settings.cluster_window)
        before = total
        try:
            for counts in write(database, found, assignments, now=now or datetime.now(UTC)):
                total += counts
                on_progress(total.articles)
        except (ConcurrentUpdate, IntegrityError):  # IntegrityError: retention has deleted a row meanwhile
            conflicts = conflicts + 1 if total == before else 0
            if conflicts == MAX_CONFLICTS:
                raise
    return {"rows": total.articles, "articles": total.articles, "new_events": total.new_events}


def read(database: Database, window: timedelta) -> ClusteringInput:
    """Read the next articles without an event, by time, and the assigned articles within the window around them."""
    with database.read() as session:
        # Read this first: any later write changes it and is detected before we write.
        latest = latest_link(session)
        url = RawArticle.url.collate(COLLATION[session.get_bind().dialect.name])
        columns = (RawArticle.id, RawArticle.url, RawArticle.published_at, RawArticle.title, RawArticle.summary)
        unassigned = (
            select(*columns)
            .where(~select(ClusterArticle.id).where(ClusterArticle.raw_article_id == RawArticle.id).exists())
            .order_by(RawArticle.published_at, url)
            .limit(READ_BATCH)
        )
        new = session.execute(unassigned).all()
        if not new:
            return ClusteringInput([], [], {}, latest)
        around = (
            select(*columns, ClusterArticle.cluster_id)
            .join(ClusterArticle, ClusterArticle.raw_article_id == RawArticle.id)
            .where(RawArticle.published_at.between(new[0].published_at - window, new[-1].published_at + window))
        )
        known = session.execute(around).all()
    return ClusteringInput(
        new=[Report(row.url, row.published_at, row.title, row.summary) for row in new],
        known=[(Report(row.url, row.published_at, row.title, row.summary), row.cluster_id) for row in known],
        ids={row.url: row.id for row in new},
        latest_link=latest,
    )


def write(
    database: Database, found: ClusteringInput, assignments: Sequence[Assignment], *, now: datetime
) -> Iterator[Counts]:
    """Store the assignments in several transactions; yield the counts after each commit."""
    latest, clusters = found.latest_link, dict[int, int]()
    for start in range(0, len(assignments), WRITE_BATCH):
        part = assignments[start : start + WRITE_BATCH]
        with database.write() as session:
            lock_clusters(session)
            if latest_link(session) != latest:
                raise ConcurrentUpdate
            first = {
                one.cluster: one.report for one in reversed(part) if one.cluster < 0 and one.cluster not in clusters
            }
            clusters |= create_clusters(session, first, now=now)
            links = [
                Link(clusters.get(one.cluster, one.cluster), found.ids[one.report.key], one.report.at) for one in part
            ]
            if link_articles(session, links, now=now) < len(links):
                raise ConcurrentUpdate
            describe(session, {link.cluster_id for link in links})
            latest = latest_link(session)
        yield Counts(articles=len(part), new_events=len(first))


def lock_clusters(session: Session) -> None:
    """Keep clustering and retention in other processes from writing until the transaction ends.

    SQLite needs no extra lock, because it has only one writer at a time.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("lock table clusters in share row exclusive mode"))


def latest_link(session: Session) -> int:
    return session.scalar(select(func.max(ClusterArticle.id))) or 0


def create_clusters(session: Session, first: Mapping[int, Report], *, now: datetime) -> dict[int, int]:
    """Insert events without articles; return their ids by temporary number."""
    if not first:
        return {}
    rows = [
        {"title": report.title, "article_count": 0, "first_at": report.at, "last_at": report.at, "updated_at": now}
        for report in first.values()
    ]
    ids = session.scalars(insert(Cluster).returning(Cluster.id, sort_by_parameter_order=True), rows)
    return dict(zip(first, ids, strict=True))


def link_articles(session: Session, links: Sequence[Link], *, now: datetime) -> int:
    """Link articles to events and update the counts; skip linked articles. Return how many links were inserted."""
    rows = [{"cluster_id": link.cluster_id, "raw_article_id": link.article_id, "linked_at": now} for link in links]
    statement = INSERT[session.get_bind().dialect.name](ClusterArticle).values(rows).on_conflict_do_nothing()
    inserted = set(session.scalars(statement.returning(ClusterArticle.raw_article_id)))
    times = defaultdict[int, list[datetime]](list)
    for link in links:
        if link.article_id in inserted:
            times[link.cluster_id].append(link.at)
    grown = [
        {"cluster": cluster_id, "more": len(found), "earliest": min(found), "latest": max(found), "now": now}
        for cluster_id, found in sorted(times.items())
    ]
    if grown:
        session.connection().execute(ADD_ARTICLES, grown)
    return len(inserted)


def describe(session: Session, cluster_ids: Iterable[int]) -> None:
    """Update the title and the sentence of events from their current articles."""
    rows = session.execute(
        select(ClusterArticle.cluster_id, RawArticle.url, RawArticle.published_at, RawArticle.title, RawArticle.summary)
        .join(RawArticle, RawArticle.id == ClusterArticle.raw_article_id)
        .where(ClusterArticle.cluster_id.in_(sorted(cluster_ids)))
    )
    members = defaultdict[int, list[Report]](list)
    for row in rows:
        members[row.cluster_id].append(Report(row.url, row.published_at, row.title, row.summary))
    texts = []
    for cluster_id, reports in sorted(members.items()):
        earliest = sorted(reports, key=lambda report: (report.at, report.key))[:DESCRIBED_BY]
        headline, sentence = summaries.headline(earliest), summaries.sentence(earliest)
        texts.append({"cluster": cluster_id, "headline": headline, "sentence": sentence})
    session.connection().execute(SET_TEXTS, texts)
