"""Queries: read documents, their runs, and the pages and fields of a run."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from apps.records.jobs import hf
from apps.records.tables import Base, Document, Field, Page, ProcessingRun
from apps.shared.database import Database

HISTORY = 200  # the newest runs of a document that are shown

database = Database(hf.settings.url, Base.metadata, prepare=hf.start)


def documents(session: Session, *, limit: int, before: str | None = None) -> list[Document]:
    """Return the newest documents, older than `before`; ids sort by creation time."""
    query = select(Document).order_by(Document.id.desc()).limit(limit)
    return list(session.scalars(query if before is None else query.where(Document.id < before)))


def count(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(Document)) or 0


def runs(session: Session, document_ids: Sequence[str]) -> list[ProcessingRun]:
    """Return the runs of some documents, the newest of each document first."""
    query = select(ProcessingRun).where(ProcessingRun.document_id.in_(document_ids))
    return list(session.scalars(query.order_by(ProcessingRun.document_id, ProcessingRun.number.desc())))


def pages(session: Session, run_id: str) -> list[str]:
    return list(session.scalars(select(Page.text).where(Page.run_id == run_id).order_by(Page.number)))


def fields(session: Session, run_id: str) -> list[Field]:
    return list(session.scalars(select(Field).where(Field.run_id == run_id).order_by(Field.number)))
