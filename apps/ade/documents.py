"""Documents: spreadsheets that someone has uploaded, kept by the digest of their bytes."""

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
MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
"""What text of Unicode may begin with."""


def kind_of(head: bytes) -> str | None:
    """What a file is by its first bytes: a workbook, or text; anything else is not taken."""
    if head.startswith(b"PK\x03\x04"):
        return XLSX
    if head.startswith(MARKS):
        return CSV
    # Text has line breaks and tabs, and no other character below the blank.
    return CSV if head.strip() and not any(byte < 32 and byte not in b"\t\n\r\x0c\x1a" for byte in head) else None


def add(
    session: Session, workspace_id: str, *, name: str, media_type: str, size: int, sha256: str, path: Path
) -> Document:
    """Keep a file; its bytes are kept once, however often it is sent."""
    if session.get(Content, (sha256, 0)) is None:
        # Whoever sends the same bytes at this moment keeps them, too: one of both does, the other finds them there.
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
    """A document, if this workspace has it."""
    found = session.get(Document, document_id)
    return found if found is not None and found.workspace_id == workspace_id else None


def listed(session: Session, workspace_id: str | None, *, limit: int) -> list[Document]:
    """The newest first."""
    wanted = select(Document).order_by(desc(Document.id)).limit(limit)
    if workspace_id is not None:
        wanted = wanted.where(Document.workspace_id == workspace_id)
    return list(session.scalars(wanted))


def content(database: Database, document: Document) -> Iterator[bytes]:
    """Its bytes, a piece at a time; ValueError if they are not what was uploaded.

    Each piece is read by a session of its own: who takes them slowly keeps no connection from others.
    """
    digest = hashlib.sha256()
    for number in itertools.count():
        wanted = select(Content.piece).where(Content.sha256 == document.sha256, Content.number == number)
        with database.read() as session:
            piece = session.scalar(wanted)
        if piece is None:
            break
        digest.update(piece)
        yield piece
    if digest.hexdigest() != document.sha256:
        raise ValueError(f"document {document.id} is not what was uploaded")


def write_to(database: Database, document: Document, path: Path) -> None:
    with path.open("xb") as file:
        for piece in content(database, document):
            file.write(piece)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        piece = file.read(PIECE)
        yield piece  # an empty file has one, too
        while piece := file.read(PIECE):
            yield piece
