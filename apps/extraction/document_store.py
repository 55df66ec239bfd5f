"""Document store: read and write documents and their contents, and find the passages nearest to a question."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import (
    Float,
    Integer,
    Row,
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

from apps.extraction import vectors
from apps.extraction.analysis import Analysis
from apps.extraction.chunks import Chunk
from apps.extraction.fields import Field
from apps.extraction.tables import DocumentChunk, DocumentField, DocumentPage, Upload, Vector
from apps.shared.database import Database, Instant

CANDIDATES = 200  # nearest passages that are ranked
EF_SEARCH = "set local hnsw.ef_search = 400"  # how many candidates pgvector's index keeps; at least CANDIDATES
ID_LENGTH = 32  # the names of all blobs of a document begin with its id
NAMES_PER_QUERY = 500
MAX_JOBS = 100  # of one document
UNFINISHED = ("PENDING", "PROCESSING")
Numbered = TypeVar("Numbered", DocumentField, DocumentChunk, DocumentPage)


JOBS = table(
    "document_processing_jobs",
    column("id", String),
    column("document_id", String),
    column("status", String),
    column("attempts", Integer),
    column("started_at", Instant),
    column("completed_at", Instant),
    column("failure_type", String),
    column("error_log", Text),
)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A passage near a question; `nearness` is the cosine similarity, at most 1."""

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
    """A row of the view `document_processing_jobs`: the state of one processing of a document."""

    id: str
    document_id: str
    status: str
    attempts: int
    started_at: datetime | None
    completed_at: datetime | None
    failure_type: str | None
    error_log: str | None

    @classmethod
    def new(cls, id: str, document_id: str) -> Job:
        """Return a job that was just submitted."""
        return cls(
            id=id,
            document_id=document_id,
            status="PENDING",
            attempts=0,
            started_at=None,
            completed_at=None,
            failure_type=None,
            error_log=None,
        )


class Deleted(Exception):
    """The document has been deleted."""


def analysis_blob(blob: str) -> str:
    """Return the name of the blob that holds the analysis of a file until it is in the tables."""
    return f"{blob}analysis"


def vectors_blob(blob: str, texts: Sequence[str]) -> str:
    """Return the name of the blob that holds the vectors of these passages until they are in the tables.

    The name depends only on the texts, so another attempt overwrites the same blob.
    """
    return f"{blob}{hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:ID_LENGTH]}"


class DocumentStore:
    """The application's tables. Writes use the caller's session, so that one transaction can include other writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def upload(self, document_id: str) -> Upload | None:
        with self._database.read() as session:
            return session.get(Upload, document_id)

    def save(
        self,
        session: Session,
        document_id: str,
        analysis: Analysis,
        fields: Sequence[Field],
        chunks: Sequence[Chunk],
        embeddings: vectors.Numbers,
        *,
        embedded_by: str,
    ) -> None:
        """Replace everything that was read from a document; raise Deleted if the document no longer exists."""
        mean = vectors.mean(embeddings) if len(embeddings) else None
        updated = session.execute(
            update(Upload)
            .where(Upload.id == document_id)
            .values(pages=len(analysis.pages), embedding=mean, embedded_by=embedded_by)
        )
        if updated.rowcount == 0:  # type: ignore[attr-defined]
            raise Deleted(document_id)
        for child in (DocumentField, DocumentChunk, DocumentPage):
            session.execute(delete(child).where(child.document_id == document_id))
        parent = {"document_id": document_id}
        rows_of: dict[Any, list[dict[str, Any]]] = {
            DocumentPage: [parent | {"number": page.number, "text": page.text} for page in analysis.pages],
            DocumentField: [parent | {"number": number} | vars(field) for number, field in enumerate(fields)],
            DocumentChunk: [
                parent | {"number": number, "embedding": embedding} | vars(chunk)
                for number, (chunk, embedding) in enumerate(zip(chunks, embeddings, strict=True))
            ],
        }
        for child, rows in rows_of.items():
            if rows:
                session.execute(insert(child), rows)

    def documents(self, *, limit: int, before: str | None = None) -> list[tuple[Upload, Job]]:
        """Return the newest documents with their jobs, older than the document `before` if it is given."""
        query = select(Upload).order_by(Upload.id.desc()).limit(limit)  # ids sort by creation time
        if before is not None:
            query = query.where(Upload.id < before)
        with self._database.read() as session:
            found = list(session.scalars(query))
            jobs = _jobs(session, [document.id for document in found])
        return [(document, jobs[document.id]) for document in found if document.id in jobs]

    def document(self, document_id: str) -> tuple[Upload, Job] | None:
        with self._database.read() as session:
            document = session.get(Upload, document_id)
            jobs = _jobs(session, [document_id])
        return None if document is None or document_id not in jobs else (document, jobs[document_id])

    def jobs(self, document_id: str) -> list[Job]:
        """Return the jobs of a document, newest first, at most MAX_JOBS."""
        with self._database.read() as session:
            query = select(JOBS).where(JOBS.c.document_id == document_id).order_by(JOBS.c.id.desc()).limit(MAX_JOBS)
            return [Job(**row._mapping) for row in session.execute(query)]

    def count(self) -> int:
        with self._database.read() as session:
            return session.scalar(select(func.count()).select_from(Upload)) or 0

    def fields(self, document_id: str) -> list[DocumentField]:
        return self._numbered(DocumentField, document_id)

    def chunks(self, document_id: str, *, first: int, limit: int) -> list[DocumentChunk]:
        return self._numbered(DocumentChunk, document_id, first=first, limit=limit)

    def pages(self, document_id: str, *, first: int, limit: int) -> list[DocumentPage]:
        return self._numbered(DocumentPage, document_id, first=first, limit=limit)

    def _numbered(
        self, kind: type[Numbered], document_id: str, *, first: int = 0, limit: int | None = None
    ) -> list[Numbered]:
        """Return the rows of a document in one of its tables, in order."""
        query = select(kind).where(kind.document_id == document_id, kind.number >= first)
        with self._database.read() as session:
            return list(session.scalars(query.order_by(kind.number).limit(limit)))

    def passages(self, document_id: str) -> int:
        """Count the passages of a document."""
        with self._database.read() as session:
            query = select(func.count()).select_from(DocumentChunk).where(DocumentChunk.document_id == document_id)
            return session.scalar(query) or 0

    def unused(self, blobs: Iterable[str]) -> Iterator[str]:
        """Yield the names of blobs that belong neither to a document nor to an unfinished job."""
        names = iter(blobs)
        while batch := list(islice(names, NAMES_PER_QUERY)):
            ids = {name[:ID_LENGTH] for name in batch}
            with self._database.read() as session:
                known = set(session.scalars(select(Upload.blob).where(Upload.blob.in_(ids))))
                jobs = _jobs(session, sorted(ids)).values()
            unfinished = {job.document_id for job in jobs if job.status in UNFINISHED}
            yield from (name for name in batch if name not in known and name[:ID_LENGTH] not in known & unfinished)

    def nearest(self, question: list[float], *, limit: int = CANDIDATES) -> list[Passage]:
        """Return the passages with the nearest vectors, nearest first."""
        parameter = bindparam("question", question, Vector)
        if self._database.is_sqlite:
            distance = func.vec_distance_cosine(DocumentChunk.embedding, parameter)
        else:
            distance = DocumentChunk.embedding.op("<=>", return_type=Float)(parameter)  # type: ignore[assignment]
        statement = (
            select(
                DocumentChunk.document_id,
                Upload.name,
                DocumentChunk.number,
                DocumentChunk.page,
                DocumentChunk.start,
                DocumentChunk.end,
                DocumentChunk.text,
                distance.label("distance"),
            )
            .join(Upload, Upload.id == DocumentChunk.document_id)
            .order_by("distance")
            .limit(limit)
        )
        with self._database.read() as session:
            if not self._database.is_sqlite:
                session.execute(text(EF_SEARCH))
            rows = session.execute(statement).all()
        # A text without words has a vector of zeros, whose distance is not a number.
        return [_passage(row) for row in rows if row.distance is not None and math.isfinite(row.distance)]


def _jobs(session: Session, document_ids: Sequence[str]) -> dict[str, Job]:
    """Return the newest job of each of these documents."""
    query = select(JOBS).join(Upload, Upload.run_id == JOBS.c.id).where(Upload.id.in_(document_ids))
    rows = session.execute(query).all() if document_ids else ()
    return {row.document_id: Job(**row._mapping) for row in rows}


def _passage(row: Row[Any]) -> Passage:
    return Passage(
        document_id=row.document_id,
        name=row.name,
        number=row.number,
        page=row.page,
        start=row.start,
        end=row.end,
        text=row.text,
        nearness=1 - float(row.distance),
    )
