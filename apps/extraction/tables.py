"""Tables: the application's own tables, in the same database as the engine's.

    uploads ──▶ document_fields, document_chunks      written together with the outcome of the run that read them
            ──▶ document_runs ──▶ the engine's runs   one for each time the document is read; never deleted by retention

`documents` and `document_processing_jobs` are views of these tables and the engine's, so that the status of a document
is stored in only one place.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import DDL, ForeignKey, Index, LargeBinary, String, Text, event
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.schema import ExecutableDDLElement
from sqlalchemy.types import TypeDecorator, UserDefinedType

from apps.extraction import vectors
from apps.shared.database import Instant


class _PgVector(UserDefinedType[Any]):
    """pgvector's type, in its text form. `sql_views.complete` sets the number of dimensions."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "vector"


class Vector(TypeDecorator[list[float]]):
    """A vector: pgvector's type on PostgreSQL, and little-endian floats for sqlite-vec on SQLite."""

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Any) -> Any:
        return dialect.type_descriptor(_PgVector() if dialect.name == "postgresql" else LargeBinary())

    def process_bind_param(self, value: list[float] | None, dialect: Any) -> Any:
        if value is None:
            return None
        return vectors.to_text(value) if dialect.name == "postgresql" else vectors.to_bytes(value)

    def process_result_value(self, value: Any, dialect: Any) -> list[float] | None:
        if value is None:
            return None
        return vectors.from_text(value) if dialect.name == "postgresql" else vectors.from_bytes(value)


class Base(DeclarativeBase):
    type_annotation_map: ClassVar[dict[Any, Any]] = {datetime: Instant, list[float]: Vector}


class Upload(Base):
    """An uploaded file. `name` is the user's file name, used only for display; the bytes are in `blob`.

    `run_id` is its newest job, `embedding` the mean of its passages' vectors, `embedded_by` the model that made them.
    """

    __tablename__ = "uploads"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    blob: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime] = mapped_column(index=True)
    created_by: Mapped[str] = mapped_column(String(200))
    run_id: Mapped[str] = mapped_column(String(32), index=True)
    pages: Mapped[int | None]
    embedding: Mapped[list[float] | None] = mapped_column(deferred=True)
    embedded_by: Mapped[str | None] = mapped_column(String(100))


class DocumentRun(Base):
    """A run that processes or has processed a document."""

    __tablename__ = "document_runs"

    run_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    document_id: Mapped[str] = mapped_column(ForeignKey("uploads.id", ondelete="CASCADE"), index=True)


class DocumentField(Base):
    """A name with its value, and the page that it is on."""

    __tablename__ = "document_fields"

    document_id: Mapped[str] = mapped_column(ForeignKey("uploads.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    value: Mapped[str] = mapped_column(Text)
    page: Mapped[int]
    source: Mapped[str] = mapped_column(String(10))
    confidence: Mapped[float]


class DocumentChunk(Base):
    """A passage, the unit of search. `start` and `end` are its position in the text of its page."""

    __tablename__ = "document_chunks"

    document_id: Mapped[str] = mapped_column(ForeignKey("uploads.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    page: Mapped[int]
    start: Mapped[int] = mapped_column("start_at")
    end: Mapped[int] = mapped_column("end_at")
    text: Mapped[str] = mapped_column(Text)
    embedding: Mapped[list[float]] = mapped_column(deferred=True)


class DocumentPage(Base):
    """The text of a page, as it was read."""

    __tablename__ = "document_pages"

    document_id: Mapped[str] = mapped_column(ForeignKey("uploads.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(Text)


class Service(Base):
    """The circuit breaker of a service, shared by all processes. It is not called before `open_until`."""

    __tablename__ = "services"

    name: Mapped[str] = mapped_column(String(50), primary_key=True)
    failures: Mapped[int]
    open_until: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column("said", Text)


Index("ix_document_fields_name", DocumentField.name)
_extension: ExecutableDDLElement = DDL("create extension if not exists vector")  # type: ignore[no-untyped-call]
event.listen(Base.metadata, "before_create", _extension.execute_if(dialect="postgresql"))
