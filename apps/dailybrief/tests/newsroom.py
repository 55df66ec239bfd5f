"""Newsroom: the tables of the daily brief in a test database, with methods to store articles and check results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from apps.dailybrief import tables
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Cluster, ClusterArticle, Feed, RawArticle
from apps.dailybrief.tests.labelled_news import Item
from apps.shared.database import Database
from sqlalchemy import Engine, Table, event, func, insert, select

START = datetime(2025, 11, 1, tzinfo=UTC)


class Crash(BaseException):
    """Simulates the death of the process; no code may catch it."""


class Newsroom:
    def __init__(self, url: str) -> None:
        self.url = url
        self.database = open_database(url)
        self.settings = Settings.load({"DAILYBRIEF_EMBEDDING": "text"})
        with self.database.write() as session:
            session.execute(insert(Feed).values(id=1, url="https://feed.test/", added_at=START))

    def store(self, items: Iterable[Item]) -> None:
        """Store articles as if they were fetched when they were published."""
        rows = [
            {"feed_id": 1, "url": address(item), "source": item.source, "title": item.title, "summary": item.summary}
            | {"published_at": item.at, "fetched_at": item.at}
            for item in items
        ]
        with self.database.write() as session:
            session.execute(insert(RawArticle), rows)

    def grouped(self) -> set[frozenset[str]]:
        """The URLs of the articles of each event."""
        found: dict[int, set[str]] = {}
        with self.database.read() as session:
            for cluster_id, url in session.execute(
                select(ClusterArticle.cluster_id, RawArticle.url).join(
                    RawArticle, RawArticle.id == ClusterArticle.raw_article_id
                )
            ):
                found.setdefault(cluster_id, set()).add(url)
        return {frozenset(urls) for urls in found.values()}

    def counts_are_right(self) -> bool:
        """Whether the article count and the first and last times of every event match its links."""
        with self.database.read() as session:
            linked = session.execute(
                select(
                    Cluster.article_count,
                    func.count(ClusterArticle.id),
                    Cluster.first_at,
                    func.min(RawArticle.published_at),
                    Cluster.last_at,
                    func.max(RawArticle.published_at),
                )
                .outerjoin(ClusterArticle, ClusterArticle.cluster_id == Cluster.id)
                .outerjoin(RawArticle, RawArticle.id == ClusterArticle.raw_article_id)
                .group_by(Cluster.id)
            ).all()
        return all(row[0] == row[1] > 0 and row[2] == row[3] and row[4] == row[5] for row in linked)

    def rows(self, *of: str) -> dict[str, int]:
        """The number of rows of these tables, or of all."""
        with self.database.read() as session:
            return {
                name: session.scalar(select(func.count()).select_from(table)) or 0
                for name, table in _tables().items()
                if name in of or not of
            }

    def contents(self, name: str) -> list[Sequence[Any]]:
        with self.database.read() as session:
            return [tuple(row) for row in session.execute(_tables()[name].select().order_by(_tables()[name].c[0]))]

    def crashes(self, work: Callable[[], object], *, left: Callable[[], bool]) -> int:
        """Crash `work` before its first statement, then before its second, and so on until it completes.

        After each crash, `left` must be true. Returns the number of crashes.
        """
        for last in range(100):
            statements = itertools.count()

            def send(*_: object, last: int = last, statements: Iterator[int] = statements) -> None:
                if next(statements) == last:
                    raise Crash

            event.listen(Engine, "before_cursor_execute", send)
            try:
                work()
            except Crash:
                pass
            else:
                return last
            finally:
                event.remove(Engine, "before_cursor_execute", send)
            assert left()
        raise AssertionError("the work never completes")

    def close(self) -> None:
        self.database.close()


def open_database(url: str) -> Database:
    """Open a database with the tables of the daily brief, but without the engine's."""
    return Database(url, tables.Table.metadata, prepare=lambda: None, complete=tables.protect)


def address(item: Item) -> str:
    return f"https://{item.source.lower().replace(' ', '-')}.test/{item.title.replace(' ', '-')}"


def _tables() -> dict[str, Table]:
    return dict(tables.Table.metadata.tables)
