"""Documents: uploaded spreadsheets; their bytes are stored once per SHA-256 digest."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import desc, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from apps.ade.tables import Content, Document
from apps.shared.database import Database
from apps.shared.ids import new_id

PIECE = 1_000_000
CSV = "text/csv"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def kind_of(head: bytes) -> str | None:
    """Return the media type of a workbook or a text file, judged by its first bytes; None for anything else."""
    if head.startswith(b"PK\x03\x04"):
        return XLSX
    if head.startswith(BYTE_ORDER_MARKS):
        return CSV
    # Text contains line breaks and tabs, but no other control characters.
    return CSV if head.strip() and not any(byte < 32 and byte not in b"\t\n\r\x0c\x1a" for byte in head) else None


def add(
    session: Session, workspace_id: str, *, name: str, media_type: str, size: int, sha256: str, path: Path
) -> Document:
    """Add a document; the same bytes are stored only once, however often they are uploaded."""
    if session.get(Content, (sha256, 0)) is None:
        # If another upload of the same bytes inserts them first, this document uses the bytes stored by that upload.
        with contextlib.suppress(IntegrityError), session.begin_nested():
            for number, piece in enumerate(_pieces(path)):
                session.add(Content(sha256=sha256, number=number, piece=piece))
                session.flush()
                session.expunge_all()
    document = Document(
        id=new_id(datetime.now(UTC)),
        workspace_id=workspace_id,
        name=name or "document",
        media_type=media_type,
        size=size,
        sha256=sha256,
        created_at=datetime.now(UTC),
    )
    session.add(document)
    session.flush()
    return document


def in_workspace(session: Session, workspace_id: str, document_id: str) -> Document | None:
    """Return the document if it belongs to the workspace, else None."""
    document = session.get(Document, document_id)
    return document if document is not None and document.workspace_id == workspace_id else None


def listed(session: Session, workspace_id: str | None, *, limit: int) -> list[Document]:
    """List documents, newest first."""
    query = select(Document).order_by(desc(Document.id)).limit(limit)
    if workspace_id is not None:
        query = query.where(Document.workspace_id == workspace_id)
    return list(session.scalars(query))


def content(database: Database, document: Document) -> Iterator[bytes]:
    """Yield the bytes of a document piece by piece; raise ValueError if they differ from the uploaded bytes.

    Each piece is read in its own session, so that a slow download holds no database connection.
    """
    digest = hashlib.sha256()
    for number in itertools.count():
        query = select(Content.piece).where(Content.sha256 == document.sha256, Content.number == number)
        with database.read() as session:
            piece = session.scalar(query)
        if piece is None:
            break
        digest.update(piece)
        yield piece
    if digest.hexdigest() != document.sha256:
        raise ValueError(f"the stored bytes of document {document.id} differ from the uploaded ones")


def write_to(database: Database, document: Document, path: Path) -> None:
    with path.open("xb") as file:
        for piece in content(database, document):
            file.write(piece)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        piece = file.read(PIECE)
        yield piece  # empty if the file is empty
        while piece := file.read(PIECE):
            yield piece
