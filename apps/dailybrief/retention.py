"""Retention: deletes old articles and events that are in no edition.

It deletes only from tables in PURGE_ALLOWED, in one transaction. An event that has not changed since the cut-off is
deleted with all of its articles, so the article count of a remaining event is always right. The conditions below keep
everything that an edition refers to. If a condition were wrong, foreign keys and triggers would refuse the deletion.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, CursorResult, delete, exists, literal, select
from sqlalchemy.orm import Session

from apps.dailybrief.events.clustering import INSERT, lock_clusters
from apps.dailybrief.logs import log_event
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import (
    PURGE_ALLOWED,
    Cluster,
    ClusterArticle,
    EditionArticle,
    ForgottenArticle,
    RawArticle,
    Table,
)
from apps.shared.database import Database, Instant


class NotPurgeable(Exception):
    """The table is not in PURGE_ALLOWED; nothing was deleted."""

    code = "not_purgeable"


def clean(
    database: Database, settings: Settings, *, now: datetime, on_progress: Callable[[int], None] = lambda rows: None
) -> dict[str, int]:
    """Delete rows that were published, fetched and linked before `now - retain_articles`.

    Returns the number of deleted rows per table. This is the result of the job, and the worker logs it.
    `on_progress` is called with the sum after the commit.

    clean(database, settings, now=scheduled_for)
    # {"rows": 912, "cluster_articles": 420, "clusters": 71, "raw_articles": 421}
    """
    before = now - settings.retain_articles
    with database.write() as session:
        lock_clusters(session)
        old = (
            select(Cluster.id)
            .where(Cluster.last_at < before, Cluster.updated_at < before)
            .where(~exists().where(EditionArticle.cluster_id == Cluster.id))
        )
        deleted = {
            "cluster_articles": purge(session, ClusterArticle, ClusterArticle.cluster_id.in_(old)),
            "clusters": purge(session, Cluster, Cluster.id.in_(old)),
        }
        old_articles = (
            (RawArticle.published_at < before)
            & (RawArticle.fetched_at < before)
            & ~exists().where(ClusterArticle.raw_article_id == RawArticle.id)
            & ~exists().where(EditionArticle.raw_article_id == RawArticle.id)
        )
        remember_undated(session, old_articles, now=now)
        deleted["raw_articles"] = purge(session, RawArticle, old_articles)
    log_event("retention_deleted", before=before, **deleted)
    rows = sum(deleted.values())
    on_progress(rows)
    return {"rows": rows} | deleted


def remember_undated(session: Session, condition: ColumnElement[bool], *, now: datetime) -> None:
    """Record the URLs of undated articles before they are deleted, so that they are not stored again as new.

    An article without a date, or with a future date, has the time of its fetch as `published_at`.
    """
    undated = select(RawArticle.url, literal(now, Instant)).where(
        condition, RawArticle.published_at == RawArticle.fetched_at
    )
    statement = INSERT[session.get_bind().dialect.name](ForgottenArticle).from_select(["url", "forgotten_at"], undated)
    session.execute(statement.on_conflict_do_nothing())


def purge(session: Session, table: type[Table], condition: ColumnElement[bool]) -> int:
    """Delete the rows that match, if the table is in PURGE_ALLOWED; return how many."""
    if table.__tablename__ not in PURGE_ALLOWED:
        raise NotPurgeable(f"rows of {table.__tablename__} are never deleted; allowed: {', '.join(PURGE_ALLOWED)}")
    statement = delete(table).where(condition).execution_options(synchronize_session=False)
    return cast("CursorResult[Any]", session.execute(statement)).rowcount
