"""Library: the documents, what was read in them, and the passages that are nearest to a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Float,
    Integer,
    String,
    Text,
    bindparam,
    column,
    delete,
    func,
    insert,
    select,
    table,
    text,
    update,
)
from sqlalchemy.orm import Session

from apps.database import Database, Instant
from apps.extraction import vectors
from apps.extraction.chunks import Chunk
from apps.extraction.fields import Field
from apps.extraction.providers import Analysis
from apps.extraction.tables import DocumentChunk, DocumentField, DocumentPage, Upload, Vector

CANDIDATES = 60  # passages that are looked at more closely
LOOK_AROUND = "set local hnsw.ef_search = 100"  # how far pgvector's index looks around


JOBS = table(
    "document_processing_jobs",
    column("id", String),
    column("document_id", String),
    column("status", String),
    column("attempts", Integer),
    column("started_at", Instant),
    column("completed_at", Instant),
    column("error_log", Text),
)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A passage that was found; the nearer to a question, the nearer to 1 is `nearness`."""

    document_id: str
    name: str
    number: int
    page: int
    start: int
    end: int
    text: str
    nearness: float


@dataclass(frozen=True, kw_only=True)
class Job:
    """How a document's processing stands, in the words of `document_processing_jobs`."""

    id: str
    document_id: str
    status: str
    attempts: int
    started_at: datetime | None
    completed_at: datetime | None
    error_log: str | None


class Library:
    """What is in the database. Whatever writes takes the caller's session: it may hold more."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def kept(self, document_id: str) -> Upload | None:
        with self._database.read() as session:
            return session.get(Upload, document_id)

    def keep(
        self,
        session: Session,
        document_id: str,
        analysis: Analysis,
        fields: Sequence[Field],
        chunks: Sequence[Chunk],
        embeddings: Sequence[list[float]],
        *,
        embedded_by: str,
    ) -> None:
        """Write all that was read in a document, in place of what may have been there."""
        for part in (DocumentField, DocumentChunk, DocumentPage):
            session.execute(delete(part).where(part.document_id == document_id))
        own = {"document_id": document_id}
        rows: dict[Any, list[dict[str, Any]]] = {
            DocumentPage: [own | {"number": page.number, "text": page.text} for page in analysis.pages],
            DocumentField: [own | {"number": number} | vars(field) for number, field in enumerate(fields)],
            DocumentChunk: [
                own | {"number": number, "embedding": embedding} | vars(chunk)
                for number, (chunk, embedding) in enumerate(zip(chunks, embeddings, strict=True))
            ],
        }
        for part, found in rows.items():
            if found:
                session.execute(insert(part), found)
        session.execute(
            update(Upload)
            .where(Upload.id == document_id)
            .values(pages=len(analysis.pages), embedding=vectors.mean(embeddings) or None, embedded_by=embedded_by)
        )

    def documents(self, *, limit: int, before: str | None = None) -> list[tuple[Upload, Job]]:
        """The newest documents with their jobs, those before another one if it is named."""
        wanted = select(Upload).order_by(Upload.id.desc()).limit(limit)
        if before is not None:
            wanted = wanted.where(Upload.id < before)
        with self._database.read() as session:
            found = list(session.scalars(wanted))
            jobs = _jobs(session, [document.id for document in found])
        return [(document, jobs[document.id]) for document in found if document.id in jobs]

    def document(self, document_id: str) -> tuple[Upload, Job] | None:
        with self._database.read() as session:
            document = session.get(Upload, document_id)
            jobs = _jobs(session, [document_id])
        return None if document is None or document_id not in jobs else (document, jobs[document_id])

    def count(self) -> int:
        with self._database.read() as session:
            return session.scalar(select(func.count()).select_from(Upload)) or 0

    def fields(self, document_id: str) -> list[DocumentField]:
        with self._database.read() as session:
            return list(
                session.scalars(
                    select(DocumentField).where(DocumentField.document_id == document_id).order_by(DocumentField.number)
                )
            )

    def chunks(self, document_id: str) -> list[DocumentChunk]:
        with self._database.read() as session:
            return list(
                session.scalars(
                    select(DocumentChunk).where(DocumentChunk.document_id == document_id).order_by(DocumentChunk.number)
                )
            )

    def pages(self, document_id: str, *, first: int, limit: int) -> list[DocumentPage]:
        with self._database.read() as session:
            return list(
                session.scalars(
                    select(DocumentPage)
                    .where(DocumentPage.document_id == document_id, DocumentPage.number >= first)
                    .order_by(DocumentPage.number)
                    .limit(limit)
                )
            )

    def unknown(self, blobs: Sequence[str]) -> list[str]:
        """Those of these files that no document has."""
        known: set[str] = set()
        with self._database.read() as session:
            for start in range(0, len(blobs), 500):
                part = blobs[start : start + 500]
                known |= set(session.scalars(select(Upload.blob).where(Upload.blob.in_(part))))
        return [name for name in blobs if name not in known]

    def nearest(self, question: list[float], *, limit: int = CANDIDATES) -> list[Passage]:
        """The passages whose vectors are nearest, nearest first."""
        asked = bindparam("question", question, Vector)
        if self._database.is_sqlite:
            distance = func.vec_distance_cosine(DocumentChunk.embedding, asked)
        else:
            distance = DocumentChunk.embedding.op("<=>", return_type=Float)(asked)  # type: ignore[assignment]
        statement = (
            select(DocumentChunk, Upload.name, distance.label("distance"))
            .join(Upload, Upload.id == DocumentChunk.document_id)
            .order_by("distance")
            .limit(limit)
        )
        with self._database.read() as session:
            if not self._database.is_sqlite:
                session.execute(text(LOOK_AROUND))
            return [_passage(*row) for row in session.execute(statement) if row.distance is not None]


def _jobs(session: Session, document_ids: Sequence[str]) -> dict[str, Job]:
    """The jobs of these documents, from the view that anyone may read."""
    rows = session.execute(select(JOBS).where(JOBS.c.document_id.in_(document_ids))).all() if document_ids else ()
    return {row.document_id: Job(**row._mapping) for row in rows}


def _passage(chunk: DocumentChunk, name: str, distance: float) -> Passage:
    return Passage(
        document_id=chunk.document_id,
        name=name,
        number=chunk.number,
        page=chunk.page,
        start=chunk.start,
        end=chunk.end,
        text=chunk.text,
        nearness=1 - float(distance),
    )
