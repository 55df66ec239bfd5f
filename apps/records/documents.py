"""Documents: add a document with its first run, and process a document again. Each is one transaction."""

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

MIN_AGE = 3600.0  # seconds before a file without a document is deleted; its upload may still be under way


class UnsupportedFile(Exception):
    """The file has no supported type, or is named .pdf but is not a PDF."""


@dataclass(frozen=True, kw_only=True)
class AddedRun:
    """A new run and the document that it processes; `number` counts the runs of the document."""

    document_id: str
    run_id: str
    number: int


def add(path: Path, *, name: str, sha256: str, by: str) -> AddedRun:
    """Store the file, then add its document and first run; raise UnsupportedFile if its type is not supported.

    The file is stored first: a document without a file would be an error, while a file without a document is deleted
    later by `delete_unused_files`.
    """
    kind: Kind | None = kind_of(path)
    if kind is None:
        raise UnsupportedFile(f"{name!r} is not a PDF, DOCX, EML or text file; convert it and upload it again")
    if kind != "pdf" and name.lower().endswith(".pdf"):
        raise UnsupportedFile(f"{name!r} is named .pdf but is not a PDF; rename it or upload the right file")
    size = path.stat().st_size
    blobs.put(path, sha256)
    now = hf.clock.now()
    with database.write() as session:
        document_id = new_id(now)
        session.add(
            Document(id=document_id, name=name, kind=kind, size=size, sha256=sha256, created_at=now, created_by=by)
        )
        session.flush()
        blobs.put(path, sha256)  # does nothing, unless the clean-up deleted the file in the meantime
        return _submit_run(session, document_id, sha256, now=now, by=by)


def process_again(document_id: str, *, by: str) -> AddedRun | None:
    """Submit a new run of a document, even while others are unfinished; return None if there is no such document."""
    now = hf.clock.now()
    with database.write() as session:
        # The row lock makes concurrent requests take their numbers one after the other on PostgreSQL. SQLite has
        # only one writer anyway.
        document = session.get(Document, document_id, with_for_update=True)
        return None if document is None else _submit_run(session, document_id, document.sha256, now=now, by=by)


def delete_unused_files() -> int:
    """Delete files that belong to no document, and return their number."""
    removed = 0
    for digest in list(blobs.older_than(MIN_AGE)):
        with database.write() as session:
            # Block other inserts: a transaction that adds a document with these bytes waits, then stores it again.
            if not database.is_sqlite:
                session.execute(text("lock table documents in share row exclusive mode"))
            if session.scalar(select(Document.id).where(Document.sha256 == digest).limit(1)) is None:
                blobs.remove(digest)
                removed += 1
    return removed


def _submit_run(session: Session, document_id: str, sha256: str, *, now: datetime, by: str) -> AddedRun:
    last = session.scalar(select(func.max(ProcessingRun.number)).where(ProcessingRun.document_id == document_id)) or 0
    run = process.using(connection=session, tags={"document": document_id}).submit(document_id, sha256)
    session.add(ProcessingRun(run_id=run.id, document_id=document_id, number=last + 1, created_at=now, created_by=by))
    return AddedRun(document_id=document_id, run_id=run.id, number=last + 1)
