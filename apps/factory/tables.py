"""Tables: videos, their editions, the pictures that they show, and what has been made of which input.

They live beside the engine's, so that an edition and the run that makes it are written in one transaction.

    jobs      a view: one row an edition that is or was made, with `<stage>_state`, `<stage>_lease_owner` and
              `<stage>_lease_expires_at`; `diagnostic` tells of a failure or a recovery
    segments  a view: one row a stage and segment, with its own lease, reason and diagnostic
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
    """Something that is to be seen; what it says may be edited, and each edition is made anew."""

    __tablename__ = "videos"

    id: Mapped[str] = mapped_column(String(80), primary_key=True)
    title: Mapped[str] = mapped_column(Text)
    made_at: Mapped[datetime] = mapped_column(Instant)
    deleting_at: Mapped[datetime | None] = mapped_column(Instant)
    """When its deletion began: from then on it is only there to be deleted."""


class Edition(Base):
    """One script of a video, and the pipeline that makes it."""

    __tablename__ = "editions"

    video_id: Mapped[str] = mapped_column(ForeignKey("videos.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    script: Mapped[str] = mapped_column(Text)
    shape: Mapped[dict[str, Any]] = mapped_column(JSON)
    run_id: Mapped[str] = mapped_column(String(40), unique=True)
    submitted_at: Mapped[datetime] = mapped_column(Instant)


class Picture(Base):
    """A picture by the name that scripts give it. What it was before is kept: editions under way show that."""

    __tablename__ = "pictures"

    name: Mapped[str] = mapped_column(String(60), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), primary_key=True, index=True)
    content: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    added_at: Mapped[datetime] = mapped_column(Instant)


class Made(Base):
    """What was made of some input (`media_records` writes it). The key tells all that it depends on."""

    __tablename__ = "products"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    stage: Mapped[str] = mapped_column(String(100))
    version: Mapped[str] = mapped_column(String(100))
    times: Mapped[int] = mapped_column(Integer)
    """How often it had to be made: more than once only if something was lost or damaged."""


class Copy(Base):
    """A run that has a product as its artifact, and the job that the run belongs to; the highest number is the newest.

    Artifacts go with their run: when a video is deleted, the copies of other videos are still known.
    """

    __tablename__ = "copies"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    run_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    job_id: Mapped[str] = mapped_column(String(40), index=True)
    number: Mapped[int] = mapped_column(Integer)


@cache
def database() -> Database:
    """Where they are. What is missing is made with the first session; any number of processes may begin at once."""
    return Database(hf.settings.url, Base.metadata, prepare=hf.start, complete=_views)


def prepare() -> None:
    """Make the tables and views that are missing, the engine's first."""
    with database().write():
        pass


def _views(connection: Connection) -> None:
    there = inspect(connection).get_view_names()
    for view in (f"{connection.dialect.name}/recoveries", "segments", "stages", "jobs"):
        if view.rpartition("/")[2] not in there:
            connection.execute(text((VIEWS / f"{view}.sql").read_text("utf-8")))
