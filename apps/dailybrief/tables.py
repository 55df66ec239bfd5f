"""Tables: what the newsroom keeps.

    feeds ──▶ raw_articles ──cluster_articles──▶ clusters
                   ▲                                ▲
                   └──────── edition_articles ──────┘
                                    │
                                    ▼
                                editions       written once: the database refuses to change or delete a row

`raw_articles`, `cluster_articles` and `clusters` may be purged, unless an edition refers to them; see PURGE_ALLOWED.
The engine's tables (`holdfast_…`) and the view `job_runs` over them stand in the same database.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, ClassVar

from sqlalchemy import Connection, Date, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from apps.shared.database import Instant

PURGE_ALLOWED = ("cluster_articles", "clusters", "raw_articles")
"""Retention may delete rows of these, and of no other table."""


class Table(DeclarativeBase):
    type_annotation_map: ClassVar[dict[Any, Any]] = {datetime: Instant, date: Date, str: Text}


class Feed(Table):
    """Where articles come from, and how the last fetch went. `etag` and `last_modified` are sent back as they came."""

    __tablename__ = "feeds"

    id: Mapped[int] = mapped_column(primary_key=True)
    url: Mapped[str] = mapped_column(String(2000), unique=True)
    title: Mapped[str] = mapped_column(default="")
    site_url: Mapped[str | None]
    added_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]
    """A feed that was removed is not fetched any more; its articles stay."""
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
    """An article as a feed brought it. `summary` is plain text; `content_html` is sanitised already."""

    __tablename__ = "raw_articles"

    id: Mapped[int] = mapped_column(primary_key=True)
    feed_id: Mapped[int] = mapped_column(ForeignKey("feeds.id", ondelete="restrict"), index=True)
    url: Mapped[str] = mapped_column(String(2000), unique=True)
    """Canonical: the same article has the same one in every feed."""
    guid: Mapped[str | None]
    source: Mapped[str]
    """Who reports it, as the reader sees it."""
    title: Mapped[str]
    summary: Mapped[str] = mapped_column(default="")
    content_html: Mapped[str] = mapped_column(default="")
    author: Mapped[str | None]
    published_at: Mapped[datetime] = mapped_column(index=True)
    """As the feed says, or the time of the fetch if it says nothing credible."""
    fetched_at: Mapped[datetime] = mapped_column(index=True)


class ForgottenArticle(Table):
    """The address of an article that retention deleted, and of which no feed said when it was published.

    A feed may list it for years. Nothing but this tells that it is not new.
    """

    __tablename__ = "forgotten_articles"

    url: Mapped[str] = mapped_column(String(2000), primary_key=True)
    forgotten_at: Mapped[datetime]


class Cluster(Table):
    """An event: what several articles report. `article_count` is how many links it has."""

    __tablename__ = "clusters"
    __table_args__ = ({"sqlite_autoincrement": True},)  # no event ever gets the address of one that was purged

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    summary: Mapped[str] = mapped_column(default="")
    """One sentence."""
    article_count: Mapped[int] = mapped_column(default=0)
    first_at: Mapped[datetime]
    """When its earliest article was published."""
    last_at: Mapped[datetime] = mapped_column(index=True)
    updated_at: Mapped[datetime]


class ClusterArticle(Table):
    """That an article belongs to an event; to one at most."""

    __tablename__ = "cluster_articles"
    __table_args__ = (
        UniqueConstraint("cluster_id", "raw_article_id"),
        UniqueConstraint("raw_article_id"),
        {"sqlite_autoincrement": True},  # a later link has a higher id: so a clustering knows that another was here
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    cluster_id: Mapped[int] = mapped_column(ForeignKey("clusters.id", ondelete="restrict"))
    raw_article_id: Mapped[int] = mapped_column(ForeignKey("raw_articles.id", ondelete="restrict"))
    linked_at: Mapped[datetime]


class Edition(Table):
    """The brief of one day in one time zone, as it was published. Nothing changes it."""

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
    """Of the three forms together: what was published can be checked for ever."""


class EditionArticle(Table):
    """What an edition refers to, in its order. Nothing changes it, and retention spares what it names."""

    __tablename__ = "edition_articles"
    __table_args__ = (Index("edition_articles_raw_article", "raw_article_id"),)

    edition_id: Mapped[int] = mapped_column(ForeignKey("editions.id", ondelete="restrict"), primary_key=True)
    raw_article_id: Mapped[int] = mapped_column(ForeignKey("raw_articles.id", ondelete="restrict"), primary_key=True)
    cluster_id: Mapped[int] = mapped_column(ForeignKey("clusters.id", ondelete="restrict"), index=True)
    position: Mapped[int]


IMMUTABLE = ("editions", "edition_articles")
REFERRED = {"raw_articles": "raw_article_id", "clusters": "cluster_id"}
"""What `edition_articles` refers to, and by which column."""

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
# The foreign keys say the same, but SQLite heeds them only on connections that ask for it; a shell does not.
SPARE = """
    create trigger if not exists {table}_spared before delete on {table}
    when exists (select 1 from edition_articles where {column} = old.id)
    begin select raise(abort, 'an edition refers to this row of {table}'); end
"""


def protect(connection: Connection) -> None:
    """Let the database refuse changes of an edition, and the deletion of what one refers to."""
    kind = connection.dialect.name
    if kind == "postgresql":
        connection.exec_driver_sql("select pg_advisory_xact_lock(7261094)")  # two processes may do it at once
        connection.exec_driver_sql(NEVER_CHANGES)
    for table in IMMUTABLE:
        for verb in VERBS[kind]:
            connection.exec_driver_sql(REFUSE[kind].format(table=table, verb=verb))
    if kind == "sqlite":
        for table, column in REFERRED.items():
            connection.exec_driver_sql(SPARE.format(table=table, column=column))
