"""Schemas: documents, jobs and passages as the API returns them and the pages show them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from apps.extraction.document_store import Job
from apps.extraction.tables import Upload

Status = Literal["Processing", "Processed", "Failed"]
JobStatus = Literal["PENDING", "PROCESSING", "COMPLETED", "FAILED"]
STATUS: dict[str, Status] = {"PENDING": "Processing", "PROCESSING": "Processing", "COMPLETED": "Processed"}


class JobView(BaseModel):
    """A row of `document_processing_jobs`; `attempts` counts the failed attempts."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    status: JobStatus
    attempts: int
    started_at: datetime | None
    completed_at: datetime | None
    failure_type: str | None = Field(description="Why it failed: ENCRYPTED, TOO_SLOW, ERROR …")
    error_log: str | None


class DocumentView(BaseModel):
    """A document and its status."""

    id: str
    name: str
    size: int
    sha256: str
    pages: int | None
    status: Status
    created_at: datetime
    created_by: str
    job: JobView


class FieldView(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    number: int
    name: str
    value: str
    page: int
    source: str
    confidence: float


class ChunkView(BaseModel):
    """A passage: characters `start` to `end` of the text of `page`."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    page: int
    start: int
    end: int
    text: str


class DocumentDetail(DocumentView):
    """A document with its fields and passages; `?after=NUMBER` returns the passages after that number."""

    jobs: list[JobView] = Field(description="The newest jobs of the document, newest first.")
    fields: list[FieldView]
    passages: int = Field(description="How many passages it has.")
    chunks: list[ChunkView]


class DocumentList(BaseModel):
    documents: list[DocumentView]
    next: str | None = Field(description="Pass this as `before` to get the next page.")


class PassageView(BaseModel):
    """A passage found by a search.

    `score` can be compared only within one search. `alike` is the number of further passages with nearly the same text.
    """

    document_id: str
    document: str
    page: int
    start: int
    end: int
    text: str
    score: float
    alike: int


class SearchResult(BaseModel):
    question: str
    passages: list[PassageView]


def document_of(document: Upload, job: Job) -> DocumentView:
    return DocumentView(**_common(document, job))


def detail_of(
    document: Upload, job: Job, *, jobs: list[Job], fields: list[Any], chunks: list[Any], passages: int
) -> DocumentDetail:
    return DocumentDetail(
        **_common(document, job),
        jobs=[JobView.model_validate(each) for each in jobs],
        passages=passages,
        fields=[FieldView.model_validate(field) for field in fields],
        chunks=[ChunkView.model_validate(chunk) for chunk in chunks],
    )


def _common(document: Upload, job: Job) -> dict[str, Any]:
    return {
        "id": document.id,
        "name": document.name,
        "size": document.size,
        "sha256": document.sha256,
        "pages": document.pages,
        "status": STATUS.get(job.status, "Failed"),
        "created_at": document.created_at,
        "created_by": document.created_by,
        "job": JobView.model_validate(job),
    }
