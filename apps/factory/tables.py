"""Tables: videos, their editions, the pictures they show, and the files made from each input.

They are in the same database as Holdfast's tables, so that an edition and its run are written in one transaction.

    jobs      a view with one row per edition, with `<stage>_state`, `<stage>_lease_owner` and
              `<stage>_lease_expires_at`; `diagnostic` describes a failure or a recovery
    segments  a view with one row per stage and segment, with its own lease, reason and diagnostic
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, Connection, ForeignKey, Integer, LargeBinary, String, Text, inspect, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from apps.factory.jobs import hf
from apps.shared.database import Database, Instant

VIEWS = Path(__file__).parent / "sql"


class Base(DeclarativeBase):
    pass


class Video(Base):
    """A video. Each change of its script creates a new edition."""

    __tablename__ = "videos"

    id: Mapped[str] = mapped_column(String(80), primary_key=True)
    title: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Instant)
    deleting_at: Mapped[datetime | None] = mapped_column(Instant)
    """When its deletion began. From then on, the video can't be used any more."""


class Edition(Base):
    """One version of a video's script, and the pipeline run that makes it."""

    __tablename__ = "editions"

    video_id: Mapped[str] = mapped_column(ForeignKey("videos.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    script: Mapped[str] = mapped_column(Text)
    video_format: Mapped[dict[str, Any]] = mapped_column(JSON)
    run_id: Mapped[str] = mapped_column(String(40), unique=True)
    submitted_at: Mapped[datetime] = mapped_column(Instant)


class Picture(Base):
    """A picture and its name in scripts. Earlier contents of a name are kept, because existing editions show them."""

    __tablename__ = "pictures"

    name: Mapped[str] = mapped_column(String(60), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), primary_key=True, index=True)
    content: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    added_at: Mapped[datetime] = mapped_column(Instant)


class MediaProduct(Base):
    """The files made from one input, written by `media_records`. The key is a digest of everything they depend on."""

    __tablename__ = "products"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    stage: Mapped[str] = mapped_column(String(100))
    version: Mapped[str] = mapped_column(String(100))
    times: Mapped[int] = mapped_column(Integer)
    """How often they were made: more than once only if a file was lost or damaged."""


class Copy(Base):
    """A run, with its job, that has the files of a key as its artifacts. The newest such run has the highest number.

    Artifacts are deleted with their run, so the copies of other videos must stay recorded when a video is deleted.
    """

    __tablename__ = "copies"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    run_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    job_id: Mapped[str] = mapped_column(String(40), index=True)
    number: Mapped[int] = mapped_column(Integer)


@cache
def database() -> Database:
    """Return the database; the first session creates missing tables, also if several processes start at once."""
    return Database(hf.settings.url, Base.metadata, prepare=hf.start, complete=_views)


def prepare() -> None:
    """Create the missing tables and views, Holdfast's first."""
    with database().write():
        pass


def _views(connection: Connection) -> None:
    existing = inspect(connection).get_view_names()
    for view in (f"{connection.dialect.name}/recoveries", "segments", "stages", "jobs"):
        if view.rpartition("/")[2] not in existing:
            connection.execute(text((VIEWS / f"{view}.sql").read_text("utf-8")))
