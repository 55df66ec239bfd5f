"""Clustering: put every article that belongs to no event yet to one, and write it down.

    read ──▶ think ──▶ write, if nobody else has written meanwhile ──▶ read again, until nothing is left

Reading and thinking hold no lock. Writing goes in short transactions, each of them whole by itself: a crash between any
two statements leaves what was committed, and the next call goes on from there. Only one clustering writes at a time; it
looks first whether the newest link is still the one that it knows, and reads again if not. Whatever happens, the
database's constraints have the last word: an article has one link, and a count grows only by a link that was inserted.
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
from apps.dailybrief.events.grouping import Placed, Report, group
from apps.dailybrief.logs import tell
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Cluster, ClusterArticle, RawArticle
from apps.shared.database import Database

AT_ONCE = 5000  # articles that are thought about in one go
WRITTEN = 200  # articles that one transaction writes
TRIES = 20  # times in a row that others may get in between without anything of ours being written
TELLING = 50  # articles of an event, the earliest, from which its title and sentence are taken

INSERT: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
COLLATION = {"sqlite": "BINARY", "postgresql": "C"}  # the order of Python's strings

GROW = (
    update(Cluster.__table__)  # type: ignore[arg-type]  # it is a Table
    .where(Cluster.id == bindparam("cluster"))
    .values(
        article_count=Cluster.article_count + bindparam("more"),
        first_at=case((Cluster.first_at > bindparam("earliest"), bindparam("earliest")), else_=Cluster.first_at),
        last_at=case((Cluster.last_at < bindparam("latest"), bindparam("latest")), else_=Cluster.last_at),
        updated_at=bindparam("now"),
    )
)
TELL = (
    update(Cluster.__table__)  # type: ignore[arg-type]
    .where(Cluster.id == bindparam("cluster"))
    .values(title=bindparam("headline"), summary=bindparam("sentence"))
)


class Interfered(Exception):
    """Another clustering has written since we read; nothing of this transaction was written."""


@dataclass(frozen=True)
class Scene:
    """What there is: unplaced articles, placed ones around them, all of their ids, and the newest link."""

    new: list[Report]
    known: list[tuple[Report, int]]
    ids: dict[str, int]
    newest_link: int


@dataclass(frozen=True)
class Link:
    """That an article, published at that time, belongs to an event."""

    cluster_id: int
    article_id: int
    at: datetime


@dataclass(frozen=True)
class Counts:
    articles: int = 0
    begun: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.articles + other.articles, self.begun + other.begun)


def cluster(
    database: Database,
    settings: Settings,
    *,
    now: datetime | None = None,
    written: Callable[[int], None] = lambda rows: None,
) -> dict[str, int]:
    """Place every article that has no event; safe to call at any time, again, and twice at once.

    `written` is told, after each transaction, how many articles have been placed so far.

    Returns what this call has done: articles placed (`rows` is the same), and events that began with one of them.

        cluster(database, settings)       # {"rows": 37, "articles": 37, "begun": 12}
    """
    embedding, total, in_vain = best(settings.embedding), Counts(), 0
    if embedding.name != settings.embedding:
        tell("embedding_missing", level=logging.WARNING, wanted=settings.embedding, used=embedding.name)
    while (scene := read(database, settings.cluster_window)).new:
        placed = group(scene.known, scene.new, embedding=embedding, window=settings.cluster_window)
        before = total
        try:
            for counts in write(database, scene, placed, now=now or datetime.now(UTC)):
                total += counts
                written(total.articles)
        except (Interfered, IntegrityError):  # the latter if retention took a row away that we meant to use
            in_vain = in_vain + 1 if total == before else 0
            if in_vain == TRIES:
                raise
    return {"rows": total.articles, "articles": total.articles, "begun": total.begun}


def read(database: Database, window: timedelta) -> Scene:
    """The next articles by time that have no event, and all that stand near enough to be compared with."""
    with database.read() as session:
        # First of all: whoever writes after this changes it, and we shall notice.
        newest = newest_link(session)
        url = RawArticle.url.collate(COLLATION[session.get_bind().dialect.name])
        columns = (RawArticle.id, RawArticle.url, RawArticle.published_at, RawArticle.title, RawArticle.summary)
        unplaced = (
            select(*columns)
            .where(~select(ClusterArticle.id).where(ClusterArticle.raw_article_id == RawArticle.id).exists())
            .order_by(RawArticle.published_at, url)
            .limit(AT_ONCE)
        )
        new = session.execute(unplaced).all()
        if not new:
            return Scene([], [], {}, newest)
        around = (
            select(*columns, ClusterArticle.cluster_id)
            .join(ClusterArticle, ClusterArticle.raw_article_id == RawArticle.id)
            .where(RawArticle.published_at.between(new[0].published_at - window, new[-1].published_at + window))
        )
        known = session.execute(around).all()
    return Scene(
        new=[Report(row.url, row.published_at, row.title, row.summary) for row in new],
        known=[(Report(row.url, row.published_at, row.title, row.summary), row.cluster_id) for row in known],
        ids={row.url: row.id for row in new},
        newest_link=newest,
    )


def write(database: Database, scene: Scene, placed: Sequence[Placed], *, now: datetime) -> Iterator[Counts]:
    """Write the places down, some in each transaction; tells after each commit what was written."""
    newest, clusters = scene.newest_link, dict[int, int]()
    for start in range(0, len(placed), WRITTEN):
        part = placed[start : start + WRITTEN]
        with database.write() as session:
            take_turn(session)
            if newest_link(session) != newest:
                raise Interfered
            first = {
                one.cluster: one.report for one in reversed(part) if one.cluster < 0 and one.cluster not in clusters
            }
            clusters |= begin(session, first, now=now)
            links = [
                Link(clusters.get(one.cluster, one.cluster), scene.ids[one.report.key], one.report.at) for one in part
            ]
            if attach(session, links, now=now) < len(links):
                raise Interfered
            describe(session, {link.cluster_id for link in links})
            newest = newest_link(session)
        yield Counts(articles=len(part), begun=len(first))


def take_turn(session: Session) -> None:
    """Let no other clustering, nor retention, write until the transaction ends. On SQLite every writer does that."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("lock table clusters in share row exclusive mode"))


def newest_link(session: Session) -> int:
    return session.scalar(select(func.max(ClusterArticle.id))) or 0


def begin(session: Session, first: Mapping[int, Report], *, now: datetime) -> dict[int, int]:
    """Events without articles, as yet: the id of each."""
    if not first:
        return {}
    rows = [
        {"title": report.title, "article_count": 0, "first_at": report.at, "last_at": report.at, "updated_at": now}
        for report in first.values()
    ]
    ids = session.scalars(insert(Cluster).returning(Cluster.id, sort_by_parameter_order=True), rows)
    return dict(zip(first, ids, strict=True))


def attach(session: Session, links: Sequence[Link], *, now: datetime) -> int:
    """Link articles to events and count those, and only those, that had no event before; tells how many."""
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
        session.connection().execute(GROW, grown)
    return len(inserted)


def describe(session: Session, cluster_ids: Iterable[int]) -> None:
    """Give events the title and the sentence that fit the articles they have now."""
    rows = session.execute(
        select(ClusterArticle.cluster_id, RawArticle.url, RawArticle.published_at, RawArticle.title, RawArticle.summary)
        .join(RawArticle, RawArticle.id == ClusterArticle.raw_article_id)
        .where(ClusterArticle.cluster_id.in_(sorted(cluster_ids)))
    )
    members = defaultdict[int, list[Report]](list)
    for row in rows:
        members[row.cluster_id].append(Report(row.url, row.published_at, row.title, row.summary))
    told = []
    for cluster_id, reports in sorted(members.items()):
        telling = sorted(reports, key=lambda report: (report.at, report.key))[:TELLING]
        headline, sentence = summaries.headline(telling), summaries.sentence(telling)
        told.append({"cluster": cluster_id, "headline": headline, "sentence": sentence})
    session.connection().execute(TELL, told)
