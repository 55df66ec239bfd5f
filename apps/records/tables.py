"""Tables: the application's own tables, in the same database as the engine's.

    documents ──▶ processing_runs ──▶ pages, fields

The state of a run is stored by the engine and not repeated here. Pages and fields belong to the run that found them, so
processing a document again changes nothing that earlier runs found.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from apps.shared.database import Instant


class Base(DeclarativeBase):
    type_annotation_map: ClassVar[dict[Any, Any]] = {datetime: Instant}


class Document(Base):
    """An uploaded file. `name` is the user's file name, used only for display; the bytes are stored under `sha256`."""

    __tablename__ = "documents"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    kind: Mapped[str] = mapped_column(String(8))
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    created_at: Mapped[datetime]
    created_by: Mapped[str] = mapped_column(String(200))


class ProcessingRun(Base):
    """A run of a document: `number` counts the runs of the document. The row is inserted together with the run."""

    __tablename__ = "processing_runs"
    __table_args__ = (UniqueConstraint("document_id", "number"),)

    run_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    document_id: Mapped[str] = mapped_column(ForeignKey("documents.id"))
    number: Mapped[int]
    created_at: Mapped[datetime]
    created_by: Mapped[str] = mapped_column(String(200))


class Page(Base):
    """The text of a page, as a run read it."""

    __tablename__ = "pages"

    run_id: Mapped[str] = mapped_column(ForeignKey("processing_runs.run_id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(Text)


class Field(Base):
    """A field that a run found: `text` is on `page`, from character `start` to `end`."""

    __tablename__ = "fields"

    run_id: Mapped[str] = mapped_column(ForeignKey("processing_runs.run_id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    name: Mapped[str] = mapped_column(String(40))
    value: Mapped[str] = mapped_column(Text)
    unit: Mapped[str | None] = mapped_column(String(3))
    text: Mapped[str] = mapped_column(Text)
    page: Mapped[int]
    start: Mapped[int] = mapped_column("start_at")
    end: Mapped[int] = mapped_column("end_at")
    confidence: Mapped[float]
