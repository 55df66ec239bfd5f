"""Document store: the documents, what was read in them, and the passages nearest to a question."""

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

CANDIDATES = 200  # passages that are looked at more closely
LOOK_AROUND = "set local hnsw.ef_search = 400"  # how far pgvector's index looks around; not less than the candidates
ID = 32  # characters of a document's id: names of what is kept beside its file begin with it
PART = 500  # names that one statement asks for
JOBS_TOLD = 100  # of one document
UNDER_WAY = ("PENDING", "PROCESSING")
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
    failure_type: str | None
    error_log: str | None

    @classmethod
    def new(cls, id: str, document_id: str) -> Job:
        """One that was just submitted."""
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
    """The document is not there any more."""


def analysis_blob(blob: str) -> str:
    """Under which name the analysis of a file is kept until it is in the tables."""
    return f"{blob}analysis"


def vectors_blob(blob: str, texts: Sequence[str]) -> str:
    """Under which name the vectors of these passages are kept until then: whoever makes them anew makes the same."""
    return f"{blob}{hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:ID]}"


class DocumentStore:
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
        embeddings: vectors.Numbers,
        *,
        embedded_by: str,
    ) -> None:
        """Write all that was read in a document, in place of what may have been there; Deleted if it is gone."""
        middle = vectors.mean(embeddings) if len(embeddings) else None
        there = session.execute(
            update(Upload)
            .where(Upload.id == document_id)
            .values(pages=len(analysis.pages), embedding=middle, embedded_by=embedded_by)
        )
        if there.rowcount == 0:  # type: ignore[attr-defined]
            raise Deleted(document_id)
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

    def documents(self, *, limit: int, before: str | None = None) -> list[tuple[Upload, Job]]:
        """The newest documents with their jobs, those before another one if it is named."""
        wanted = select(Upload).order_by(Upload.id.desc()).limit(limit)  # ids begin with the time
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

    def jobs(self, document_id: str) -> list[Job]:
        """The jobs of a document, the newest first; of very many the newest."""
        with self._database.read() as session:
            wanted = select(JOBS).where(JOBS.c.document_id == document_id).order_by(JOBS.c.id.desc()).limit(JOBS_TOLD)
            return [Job(**row._mapping) for row in session.execute(wanted)]

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
        self, of: type[Numbered], document_id: str, *, first: int = 0, limit: int | None = None
    ) -> list[Numbered]:
        """What a document has of these, in their order."""
        wanted = select(of).where(of.document_id == document_id, of.number >= first).order_by(of.number).limit(limit)
        with self._database.read() as session:
            return list(session.scalars(wanted))

    def passages(self, document_id: str) -> int:
        """How many passages it has."""
        with self._database.read() as session:
            wanted = select(func.count()).select_from(DocumentChunk).where(DocumentChunk.document_id == document_id)
            return session.scalar(wanted) or 0

    def unneeded(self, blobs: Iterable[str]) -> Iterator[str]:
        """Those of these files that no document has, nor a job that is not over."""
        names = iter(blobs)
        while part := list(islice(names, PART)):
            ids = {name[:ID] for name in part}
            with self._database.read() as session:
                known = set(session.scalars(select(Upload.blob).where(Upload.blob.in_(ids))))
                read = {job.document_id for job in _jobs(session, sorted(ids)).values() if job.status in UNDER_WAY}
            yield from (name for name in part if name not in known and name[:ID] not in known & read)

    def nearest(self, question: list[float], *, limit: int = CANDIDATES) -> list[Passage]:
        """The passages whose vectors are nearest, nearest first."""
        asked = bindparam("question", question, Vector)
        if self._database.is_sqlite:
            distance = func.vec_distance_cosine(DocumentChunk.embedding, asked)
        else:
            distance = DocumentChunk.embedding.op("<=>", return_type=Float)(asked)  # type: ignore[assignment]
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
                session.execute(text(LOOK_AROUND))
            found = session.execute(statement).all()
        # The nearness of nothing to something (a text without a word) is no number.
        return [_passage(row) for row in found if row.distance is not None and math.isfinite(row.distance)]


def _jobs(session: Session, document_ids: Sequence[str]) -> dict[str, Job]:
    """The newest jobs of these documents, from the view that anyone may read."""
    wanted = select(JOBS).join(Upload, Upload.run_id == JOBS.c.id).where(Upload.id.in_(document_ids))
    rows = session.execute(wanted).all() if document_ids else ()
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
