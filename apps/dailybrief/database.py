"""Database: where the newsroom's tables live: the same database as the engine's, SQLite or PostgreSQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.orm import Session, sessionmaker

from apps.shared.database import DRIVERS
from holdfast import InvalidSetting

Sessions = sessionmaker[Session]

BUSY_TIMEOUT = 30  # seconds that a writer waits for the one before it, on SQLite


def connect(url: str) -> Engine:
    """An engine for `HOLDFAST_URL`. Its transactions are for writing, unless `reading=True` is among its options."""
    address = make_url(url)
    driver = DRIVERS.get(address.get_backend_name())
    if driver is None:
        raise InvalidSetting("HOLDFAST_URL: the newsroom keeps its tables in SQLite or PostgreSQL")
    if driver != "sqlite":
        return create_engine(address.set(drivername=driver), pool_pre_ping=True, isolation_level="READ COMMITTED")
    engine = create_engine(address, connect_args={"timeout": BUSY_TIMEOUT})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def writers(engine: Engine) -> Sessions:
    """Sessions that may write. On SQLite each takes the write lock at its first statement: keep them short."""
    return sessionmaker(engine)


def readers(engine: Engine) -> Sessions:
    """Sessions that only read: they wait for nobody, and nobody waits for them."""
    return sessionmaker(engine.execution_options(reading=True))


def _prepare(connection: Any, record: object) -> None:
    connection.isolation_level = None  # we say when a transaction begins
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma synchronous = full")
    connection.execute("pragma wal_autocheckpoint = 0")  # Holdfast checkpoints, when no one writes


def _begin(connection: Connection) -> None:
    # A transaction that has read can't be upgraded while others write: who may write takes the lock at once.
    reading = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("begin" if reading else "begin immediate")
