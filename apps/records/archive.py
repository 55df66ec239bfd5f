"""Archive: what is known of documents and of what runs have found in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from apps.records.finding.found import Found
from apps.records.tables import Document, Field, Page, ProcessingRun

HISTORY = 200  # runs of a document that are told of


def documents(session: Session, *, limit: int, before: str | None = None) -> list[Document]:
    """The newest documents; ids sort by their age."""
    asked = select(Document).order_by(Document.id.desc()).limit(limit)
    return list(session.scalars(asked if before is None else asked.where(Document.id < before)))


def count(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(Document)) or 0


def runs(session: Session, document_ids: Sequence[str]) -> list[ProcessingRun]:
    """The runs of some documents, the newest of each first."""
    asked = select(ProcessingRun).where(ProcessingRun.document_id.in_(document_ids))
    return list(session.scalars(asked.order_by(ProcessingRun.document_id, ProcessingRun.number.desc())))


def pages(session: Session, run_id: str) -> list[str]:
    return list(session.scalars(select(Page.text).where(Page.run_id == run_id).order_by(Page.number)))


def fields(session: Session, run_id: str) -> list[Field]:
    return list(session.scalars(select(Field).where(Field.run_id == run_id).order_by(Field.number)))


def keep_pages(session: Session, run_id: str, texts: Sequence[str]) -> None:
    """Keep what a run has read; a step that is tried again begins anew."""
    session.execute(delete(Page).where(Page.run_id == run_id))
    rows = [{"run_id": run_id, "number": number, "text": text} for number, text in enumerate(texts, start=1)]
    session.execute(insert(Page), rows)


def keep_fields(session: Session, run_id: str, found: Sequence[Found]) -> None:
    session.execute(delete(Field).where(Field.run_id == run_id))
    if found:
        rows = [{"run_id": run_id, "number": number, **asdict(one)} for number, one in enumerate(found, start=1)]
        session.execute(insert(Field), rows)


def found(session: Session, run_id: str) -> list[Found]:
    """The fields of a run as values."""
    names = ("kind", "name", "value", "unit", "text", "page", "start", "end", "confidence")
    return [Found(**{name: getattr(field, name) for name in names}) for field in fields(session, run_id)]
