"""Tables of the daily brief.

    feeds ──▶ raw_articles ──cluster_articles──▶ clusters
                   ▲                                ▲
                   └──────── edition_articles ──────┘
                                    │
                                    ▼
                                editions       written once: the database refuses to change or delete a row

Retention may delete rows of `raw_articles`, `cluster_articles` and `clusters` that no edition refers to; see
PURGE_ALLOWED. The engine's tables (`holdfast_…`) and the view `job_runs` are in the same database.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, ClassVar

from sqlalchemy import Connection, Date, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from apps.shared.database import Instant

PURGE_ALLOWED = ("cluster_articles", "clusters", "raw_articles")
"""The only tables from which retention may delete rows."""


class Table(DeclarativeBase):
    type_annotation_map: ClassVar[dict[Any, Any]] = {datetime: Instant, date: Date, str: Text}


class Feed(Table):
    """A feed and the result of its last fetch. The next request sends `etag` and `last_modified` unchanged."""

    __tablename__ = "feeds"

    id: Mapped[int] = mapped_column(primary_key=True)
    url: Mapped[str] = mapped_column(String(2000), unique=True)
    title: Mapped[str] = mapped_column(default="")
    site_url: Mapped[str | None]
    added_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]
    """A removed feed is not fetched any more; its articles stay."""
    etag: Mapped[str | None]
    last_modified: Mapped[str | None]
    last_fetch_at: Mapped[datetime | None]
    last_success_at: Mapped[datetime | None]
    last_status: Mapped[int | None]
    error_code: Mapped[str | None] = mapped_column(String(64))
    error: Mapped[str | None]
    failures: Mapped[int] = mapped_column(default=0)
    """How many fetches in a row have failed."""


class RawArticle(Table):
    """An article of a feed. `summary` is plain text; `content_html` is sanitised."""

    __tablename__ = "raw_articles"

    id: Mapped[int] = mapped_column(primary_key=True)
    feed_id: Mapped[int] = mapped_column(ForeignKey("feeds.id", ondelete="restrict"), index=True)
    url: Mapped[str] = mapped_column(String(2000), unique=True)
    """The canonical URL, which is the same for an article in every feed."""
    guid: Mapped[str | None]
    source: Mapped[str]
    """The name of the publisher that readers see."""
    title: Mapped[str]
    summary: Mapped[str] = mapped_column(default="")
    content_html: Mapped[str] = mapped_column(default="")
    author: Mapped[str | None]
    published_at: Mapped[datetime] = mapped_column(index=True)
    """The date in the feed, or the time of the fetch if the feed has no plausible date."""
    fetched_at: Mapped[datetime] = mapped_column(index=True)


class ForgottenArticle(Table):
    """The URL of a deleted article without a date.

    The feed may list the article for years. Without this row, it would be stored as a new article each time.
    """

    __tablename__ = "forgotten_articles"

    url: Mapped[str] = mapped_column(String(2000), primary_key=True)
    forgotten_at: Mapped[datetime]


class Cluster(Table):
    """An event that articles report. `article_count` is the number of its links."""

    __tablename__ = "clusters"
    __table_args__ = ({"sqlite_autoincrement": True},)  # the id, and so the URL, of a deleted event is never reused

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    summary: Mapped[str] = mapped_column(default="")
    """One sentence."""
    article_count: Mapped[int] = mapped_column(default=0)
    first_at: Mapped[datetime]
    """When the earliest article was published."""
    last_at: Mapped[datetime] = mapped_column(index=True)
    updated_at: Mapped[datetime]


class ClusterArticle(Table):
    """The link of an article to its event. An article has at most one."""

    __tablename__ = "cluster_articles"
    __table_args__ = (
        UniqueConstraint("cluster_id", "raw_article_id"),
        UniqueConstraint("raw_article_id"),
        {"sqlite_autoincrement": True},  # a later link has a higher id, so that concurrent clustering is detected
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    cluster_id: Mapped[int] = mapped_column(ForeignKey("clusters.id", ondelete="restrict"))
    raw_article_id: Mapped[int] = mapped_column(ForeignKey("raw_articles.id", ondelete="restrict"))
    linked_at: Mapped[datetime]


class Edition(Table):
    """The published brief of one day in one time zone. It is never changed."""

    __tablename__ = "editions"
    __table_args__ = (UniqueConstraint("day", "time_zone"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    day: Mapped[date]
    time_zone: Mapped[str] = mapped_column(String(64))
    published_at: Mapped[datetime]
    title: Mapped[str]
    markdown: Mapped[str]
    html: Mapped[str]
    json_feed: Mapped[str]
    sha256: Mapped[str] = mapped_column(String(64))
    """The hash of all three formats, to verify that the edition is unchanged."""


class EditionArticle(Table):
    """An article in an edition, with its event and position. It never changes; retention keeps article and event."""

    __tablename__ = "edition_articles"
    __table_args__ = (Index("edition_articles_raw_article", "raw_article_id"),)

    edition_id: Mapped[int] = mapped_column(ForeignKey("editions.id", ondelete="restrict"), primary_key=True)
    raw_article_id: Mapped[int] = mapped_column(ForeignKey("raw_articles.id", ondelete="restrict"), primary_key=True)
    cluster_id: Mapped[int] = mapped_column(ForeignKey("clusters.id", ondelete="restrict"), index=True)
    position: Mapped[int]


IMMUTABLE = ("editions", "edition_articles")
REFERENCED = {"raw_articles": "raw_article_id", "clusters": "cluster_id"}
"""The tables that `edition_articles` refers to, each with the column that refers to it."""

REFUSE = {
    "sqlite": """
        create trigger if not exists {table}_{verb} before {verb} on {table}
        begin select raise(abort, 'a row of {table} never changes'); end
    """,
    "postgresql": """
        create or replace trigger {table}_{verb} before {verb} on {table}
        for each statement execute function dailybrief_never_changes()
    """,
}
VERBS = {"sqlite": ("update", "delete"), "postgresql": ("update", "delete", "truncate")}
NEVER_CHANGES = """
    create or replace function dailybrief_never_changes() returns trigger language plpgsql
    as $$ begin raise exception 'a row of %% never changes', tg_table_name using errcode = 'restrict_violation'; end $$
"""
# SQLite enforces foreign keys only on connections that enable them, and its shell does not.
PROTECT_REFERENCED = """
    create trigger if not exists {table}_spared before delete on {table}
    when exists (select 1 from edition_articles where {column} = old.id)
    begin select raise(abort, 'an edition refers to this row of {table}'); end
"""


def protect(connection: Connection) -> None:
    """Create triggers that refuse changes to editions and the deletion of rows that they refer to."""
    kind = connection.dialect.name
    if kind == "postgresql":
        connection.exec_driver_sql("select pg_advisory_xact_lock(7261094)")  # two processes may run this at once
        connection.exec_driver_sql(NEVER_CHANGES)
    for table in IMMUTABLE:
        for verb in VERBS[kind]:
            connection.exec_driver_sql(REFUSE[kind].format(table=table, verb=verb))
    if kind == "sqlite":
        for table, column in REFERENCED.items():
            connection.exec_driver_sql(PROTECT_REFERENCED.format(table=table, column=column))
