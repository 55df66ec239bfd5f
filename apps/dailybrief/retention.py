"""Retention: delete what is old, unless an edition refers to it.

Only tables in PURGE_ALLOWED are touched, in one transaction. An event goes as a whole, with its articles, when nothing
has happened to it since the cut-off; so the count of an event that stays is never wrong. What an edition refers to is
spared by the conditions below, and by foreign keys and triggers should they ever be wrong: then nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, CursorResult, delete, exists, literal, select
from sqlalchemy.orm import Session

from apps.dailybrief.events.clustering import INSERT, take_turn
from apps.dailybrief.logs import tell
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
    """That table is not in PURGE_ALLOWED; nothing was deleted."""

    code = "not_purgeable"


def clean(
    database: Database, settings: Settings, *, now: datetime, written: Callable[[int], None] = lambda rows: None
) -> dict[str, int]:
    """Delete what was published, fetched and linked before `now` - `retain_articles`; tells how many rows of what.

    The counts are the job's result, which the worker logs. `written` is told their sum once they are committed.

    clean(database, settings, now=scheduled_for)
    # {"rows": 912, "cluster_articles": 420, "clusters": 71, "raw_articles": 421}
    """
    before = now - settings.retain_articles
    with database.write() as session:
        take_turn(session)
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
        forget(session, old_articles, now=now)
        deleted["raw_articles"] = purge(session, RawArticle, old_articles)
    tell("retention_deleted", before=before, **deleted)
    rows = sum(deleted.values())
    written(rows)
    return {"rows": rows} | deleted


def forget(session: Session, condition: ColumnElement[bool], *, now: datetime) -> None:
    """Remember the addresses of those articles that no date would keep from coming in as new.

    Where a feed says no date, or one that is still to come, an article counts as published when it was fetched.
    """
    undated = select(RawArticle.url, literal(now, Instant)).where(
        condition, RawArticle.published_at == RawArticle.fetched_at
    )
    statement = INSERT[session.get_bind().dialect.name](ForgottenArticle).from_select(["url", "forgotten_at"], undated)
    session.execute(statement.on_conflict_do_nothing())


def purge(session: Session, table: type[Table], condition: ColumnElement[bool]) -> int:
    """Delete the rows for which that holds, if the table allows it; tells how many."""
    if table.__tablename__ not in PURGE_ALLOWED:
        raise NotPurgeable(f"rows of {table.__tablename__} are never purged")
    statement = delete(table).where(condition).execution_options(synchronize_session=False)
    return cast("CursorResult[Any]", session.execute(statement)).rowcount
