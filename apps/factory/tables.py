"""Tables: videos, their editions, the pictures that they show, and what has been made of which input.

They live beside the engine's, so that an edition and the run that makes it are written in one transaction.

    jobs      a view: one row an edition that is or was made, with `<stage>_state`, `<stage>_lease_owner` and
              `<stage>_lease_expires_at`
    segments  a view: one row a stage and segment, with its own lease
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2
from sqlalchemy import (
    JSON,
    Connection,
    DateTime,
    Engine,
    ForeignKey,
    Integer,
    LargeBinary,
    String,
    Text,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

VIEWS = Path(__file__).parent / "sql"
BUSY_TIMEOUT = 30
_LOCK = 0x666163746F7279  # of PostgreSQL's advisory locks: this application's


class Base(DeclarativeBase):
    pass


class Video(Base):
    """Something that is to be seen; what it says may be edited, and each edition is made anew."""

    __tablename__ = "videos"

    id: Mapped[str] = mapped_column(String(80), primary_key=True)
    title: Mapped[str] = mapped_column(Text)
    made_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class Edition(Base):
    """One script of a video, and the pipeline that makes it."""

    __tablename__ = "editions"

    video_id: Mapped[str] = mapped_column(ForeignKey("videos.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    script: Mapped[str] = mapped_column(Text)
    shape: Mapped[dict[str, Any]] = mapped_column(JSON)
    run_id: Mapped[str] = mapped_column(String(40), unique=True)
    submitted_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class Picture(Base):
    """A picture by the name that scripts give it. What it was before is kept: editions under way show that."""

    __tablename__ = "pictures"

    name: Mapped[str] = mapped_column(String(60), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), primary_key=True, index=True)
    content: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    added_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class Made(Base):
    """What was made of some input: which run has it. The key is a digest of all that it depends on."""

    __tablename__ = "products"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    stage: Mapped[str] = mapped_column(String(100))
    version: Mapped[str] = mapped_column(String(100))
    run_id: Mapped[str] = mapped_column(String(40))
    times: Mapped[int] = mapped_column(Integer)
    """How often it had to be made: more than once only if something was lost or damaged."""


def connect(url: str) -> Engine:
    """An engine for `HOLDFAST_URL`. Its transactions are for writing, unless `reading=True` is among its options."""
    address = make_url(url)
    if address.get_backend_name() == "postgresql":
        return create_engine(address.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    # The library that Holdfast uses: two SQLite libraries in one process drop each other's locks.
    engine = create_engine(address, module=pysqlite3.dbapi2, connect_args={"timeout": BUSY_TIMEOUT})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def prepare(engine: Engine) -> None:
    """Make what is missing, after the engine's own tables. Any number of processes may begin with it at once."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        Base.metadata.create_all(connection)
        there = inspect(connection).get_view_names()
        for view in ("segments", "stages", "jobs"):
            if view not in there:
                connection.execute(text((VIEWS / f"{view}.sql").read_text("utf-8")))


def _prepare(connection: Any, record: object) -> None:
    connection.isolation_level = None  # we say when a transaction begins
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma synchronous = full")


def _begin(connection: Connection) -> None:
    # A transaction that has read can't be upgraded while others write: who may write takes the lock at once.
    reading = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("begin" if reading else "begin immediate")
