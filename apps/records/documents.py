"""Documents: a file becomes a document with its first run, and a document gets another run. Each is one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from apps.records.file_types import Kind, kind_of
from apps.records.jobs import blobs, hf, process
from apps.records.queries import database
from apps.records.tables import Document, ProcessingRun
from apps.shared.ids import new_id

YOUNG = 3600.0  # seconds that a file without a document is left alone: it may be on its way


class NotTaken(Exception):
    """A file that is of none of the kinds that are read here."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A document and the run that was asked for."""

    document_id: str
    run_id: str
    number: int


def take(path: Path, *, name: str, sha256: str, by: str) -> Taken:
    """Keep the file, then its document and its first run; NotTaken if it is of no kind that is known, or is called a
    PDF and is none.

    The file comes first: a document without one would be worse than a file without a document, which is collected.
    """
    kind: Kind | None = kind_of(path)
    if kind is None:
        raise NotTaken(f"{name!r} is neither PDF, DOCX, EML nor text")
    if kind != "pdf" and name.lower().endswith(".pdf"):
        raise NotTaken(f"{name!r} is called a PDF and is none")
    size = path.stat().st_size
    blobs.put(path, sha256)
    now = hf.clock.now()
    with database.write() as session:
        document_id = new_id(now)
        session.add(
            Document(id=document_id, name=name, kind=kind, size=size, sha256=sha256, created_at=now, created_by=by)
        )
        session.flush()
        blobs.put(path, sha256)  # nothing, unless it was collected in the meantime
        return _ask(session, document_id, sha256, now=now, by=by)


def again(document_id: str, *, by: str) -> Taken | None:
    """One more run of a document, whatever its others do; None if there is no such document."""
    now = hf.clock.now()
    with database.write() as session:
        # On PostgreSQL the row's lock does what SQLite's one write lock does: numbers are given one after the other.
        document = session.get(Document, document_id, with_for_update=True)
        return None if document is None else _ask(session, document_id, document.sha256, now=now, by=by)


def collect() -> int:
    """Remove the files that no document has; how many there were."""
    removed = 0
    for digest in list(blobs.older_than(YOUNG)):
        with database.write() as session:
            # A transaction that is about to insert a document with these bytes waits, and then sees that they are gone.
            if not database.is_sqlite:
                session.execute(text("lock table documents in share row exclusive mode"))
            if session.scalar(select(Document.id).where(Document.sha256 == digest).limit(1)) is None:
                blobs.remove(digest)
                removed += 1
    return removed


def _ask(session: Session, document_id: str, sha256: str, *, now: datetime, by: str) -> Taken:
    last = session.scalar(select(func.max(ProcessingRun.number)).where(ProcessingRun.document_id == document_id)) or 0
    run = process.using(connection=session, tags={"document": document_id}).submit(document_id, sha256)
    session.add(ProcessingRun(run_id=run.id, document_id=document_id, number=last + 1, created_at=now, created_by=by))
    return Taken(document_id=document_id, run_id=run.id, number=last + 1)
