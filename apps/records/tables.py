"""Tables: what the archive keeps beside the engine's runs, in the same database.

    documents ──▶ processing_runs ──▶ pages, fields        rows are only ever added

A processing run's state is the engine's: nothing here repeats it. Pages and fields belong to the run that found them:
processing a document again leaves what was found before as it was.
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
    """A file that someone sent. `name` is what they called it, and is only ever shown; its bytes lie under `sha256`."""

    __tablename__ = "documents"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    kind: Mapped[str] = mapped_column(String(8))
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    created_at: Mapped[datetime]
    created_by: Mapped[str] = mapped_column(String(200))


class ProcessingRun(Base):
    """That a run was asked for: the how-manieth of its document, by whom. It is inserted with the run itself."""

    __tablename__ = "processing_runs"
    __table_args__ = (UniqueConstraint("document_id", "number"),)

    run_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    document_id: Mapped[str] = mapped_column(ForeignKey("documents.id"))
    number: Mapped[int]
    created_at: Mapped[datetime]
    created_by: Mapped[str] = mapped_column(String(200))


class Page(Base):
    """The text of a page, as one run read it."""

    __tablename__ = "pages"

    run_id: Mapped[str] = mapped_column(ForeignKey("processing_runs.run_id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(Text)


class Field(Base):
    """Something that a run found in the text: `text` stands on `page` from `start` to `end`."""

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
