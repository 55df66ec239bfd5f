"""Intake: a file becomes a document with its job; a document is tried once more, or deleted."""

from __future__ import annotations

import secrets
from datetime import datetime
from pathlib import Path

from sqlalchemy import update

from apps.extraction.engine import blobs, database, hf, process
from apps.extraction.tables import Upload
from holdfast import RunNotFound


def take(path: Path, *, name: str, size: int, sha256: str, by: str) -> Upload:
    """Keep the file, then its document and its job in one transaction.

    A file that can't be kept leaves neither; one whose rows could not be written is collected later.
    """
    now = hf.clock.now()
    document_id = new_id(now)
    blobs.put(document_id, path)
    with database.write() as session:
        run = process.using(connection=session, tags={"document": document_id}).submit(document_id=document_id)
        document = Upload(
            id=document_id,
            name=name,
            size=size,
            sha256=sha256,
            blob=document_id,
            created_at=now,
            created_by=by,
            run_id=run.id,
        )
        session.add(document)
    return document


def again(document_id: str) -> bool | None:
    """Another job for a document whose last one has ended; None if there is no such document, False if it goes on."""
    with database.write() as session:
        document = session.get(Upload, document_id, with_for_update=True)
        if document is None:
            return None
        if not hf.snapshot(document.run_id).ended:
            return False
        run = process.using(connection=session, tags={"document": document_id}).submit(document_id=document_id)
        session.execute(update(Upload).where(Upload.id == document_id).values(run_id=run.id))
        return True


def remove(document_id: str, *, by: str) -> bool:
    """Delete a document and all that was read in it; a job under way is cancelled. Its file goes, now or later."""
    with database.write() as session:
        document = session.get(Upload, document_id, with_for_update=True)
        if document is None:
            return False
        blob, run_id = document.blob, document.run_id
        session.delete(document)
    try:
        if not hf.snapshot(run_id).ended:
            hf.cancel(run_id, reason="its document was deleted", by=by)
    except RunNotFound:
        pass  # it ended long ago, and retention has removed it
    blobs.remove(blob)
    return True


def new_id(now: datetime) -> str:
    """An id that no one can guess; later ones sort after earlier ones."""
    return f"{int(now.timestamp() * 1000):012x}{secrets.token_hex(10)}"
