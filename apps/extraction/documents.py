"""Documents: a file becomes a document with its job; a document is tried once more, or deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from apps.extraction.document_store import analysis_blob
from apps.extraction.jobs import blobs, breaker, database, hf, process, settings
from apps.extraction.providers import Trouble
from apps.extraction.tables import DocumentRun, Upload
from apps.shared.ids import new_id


@dataclass(frozen=True, kw_only=True)
class File:
    """A file that someone sent, and what they call it."""

    path: Path
    name: str
    size: int
    sha256: str


def take(file: File, *, by: str) -> Upload:
    """Keep the file, then its document and its job in one transaction.

    A file that can't be kept leaves neither; one whose rows could not be written is collected later.
    """
    document = _put(file, by=by)
    with database.write() as session:
        _add(session, document)
    return document


def take_first(files: Sequence[File], *, by: str) -> bool:
    """Take in all of these files or none of them, and only if there is no document yet."""
    documents = [_put(file, by=by) for file in files]
    with database.write() as session:
        if session.scalar(select(func.count()).select_from(Upload)):
            return False
        for document in documents:
            _add(session, document)
    return True


def again(document_id: str) -> bool | None:
    """Another job for a document whose last one has ended; None if there is no such document, False if it goes on."""
    with database.write() as session:
        document = session.get(Upload, document_id, with_for_update=True)
        if document is None:
            return None
        if not _ended(document.run_id):
            return False
        _submit(session, document)
        return True


def remove(document_id: str, *, by: str) -> bool:
    """Delete a document and all that was read in it; a job under way is cancelled. Its file goes, now or later."""
    with database.write() as session:
        document = session.get(Upload, document_id, with_for_update=True)
        if document is None:
            return False
        session.delete(document)
    # A job that is not told would find out by itself.
    if not _ended(document.run_id):
        hf.cancel(document.run_id, reason="its document was deleted", by=by)
    for name in (document.blob, analysis_blob(document.blob)):
        with contextlib.suppress(Trouble):  # what can't be removed at this moment is collected later
            blobs.remove(name)
    return True


def _put(file: File, *, by: str) -> Upload:
    now = hf.clock.now()
    document_id = new_id(now)
    breaker.ask(blobs.name, lambda: blobs.put(document_id, file.path))
    return Upload(
        id=document_id,
        name=file.name,
        size=file.size,
        sha256=file.sha256,
        blob=document_id,
        created_at=now,
        created_by=by[:200],
    )


def _add(session: Session, document: Upload) -> None:
    if hf.clock.now() - document.created_at > settings.collect_after / 2:
        # The clean-up of unused files may be about to delete this one.
        raise Trouble(blobs.name, "the file took too long to be kept")
    _submit(session, document)


def _submit(session: Session, document: Upload) -> None:
    """Another job for the document, in the caller's transaction."""
    submitted = process.using(connection=session, tags={"document": document.id}).submit(document_id=document.id)
    document.run_id = submitted.id
    session.add(document)
    session.flush()  # the document comes before what names it
    session.add(DocumentRun(run_id=submitted.id, document_id=document.id))


def _ended(run_id: str) -> bool:
    return hf.snapshot(run_id).ended
