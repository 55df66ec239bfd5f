"""Documents: add a document with its job, process a document again, delete it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from apps.extraction.document_store import analysis_blob
from apps.extraction.jobs import blobs, breaker, database, hf, process, settings
from apps.extraction.providers import ServiceError
from apps.extraction.tables import DocumentRun, Upload
from apps.shared.ids import new_id


@dataclass(frozen=True, kw_only=True)
class File:
    """An uploaded file, and the name that the user gave it."""

    path: Path
    name: str
    size: int
    sha256: str


def add(file: File, *, by: str) -> Upload:
    """Store the file, then add its document and its job in one transaction.

    If the file can't be stored, no row is written. If the rows can't be written, the file is deleted later.
    """
    document = _store_file(file, by=by)
    with database.write() as session:
        _add(session, document)
    return document


def add_if_empty(files: Sequence[File], *, by: str) -> bool:
    """Add all of these files or none of them, and only if there is no document yet."""
    documents = [_store_file(file, by=by) for file in files]
    with database.write() as session:
        if session.scalar(select(func.count()).select_from(Upload)):
            return False
        for document in documents:
            _add(session, document)
    return True


def process_again(document_id: str) -> bool | None:
    """Submit another job for a document.

    Return None if there is no such document, and False if its last job has not ended.
    """
    with database.write() as session:
        document = session.get(Upload, document_id, with_for_update=True)
        if document is None:
            return None
        if not _ended(document.run_id):
            return False
        _submit(session, document)
        return True


def delete(document_id: str, *, by: str) -> bool:
    """Delete a document with everything read from it, and cancel its job; return False if it does not exist.

    Files that can't be deleted now are deleted later by the clean-up.
    """
    with database.write() as session:
        document = session.get(Upload, document_id, with_for_update=True)
        if document is None:
            return False
        session.delete(document)
    # Cancelling only saves work: without it, the job would notice the deletion when it saves its results.
    if not _ended(document.run_id):
        hf.cancel(document.run_id, reason="its document was deleted", by=by)
    for name in (document.blob, analysis_blob(document.blob)):
        with contextlib.suppress(ServiceError):
            blobs.remove(name)
    return True


def _store_file(file: File, *, by: str) -> Upload:
    now = hf.clock.now()
    document_id = new_id(now)
    breaker.call(blobs.name, lambda: blobs.put(document_id, file.path))
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
        raise ServiceError(blobs.name, "storing the file took too long; upload it again")
    _submit(session, document)


def _submit(session: Session, document: Upload) -> None:
    """Submit a job for the document in the caller's transaction."""
    submitted = process.using(connection=session, tags={"document": document.id}).submit(document_id=document.id)
    document.run_id = submitted.id
    session.add(document)
    session.flush()  # insert the document before the row that refers to it
    session.add(DocumentRun(run_id=submitted.id, document_id=document.id))


def _ended(run_id: str) -> bool:
    return hf.snapshot(run_id).ended
