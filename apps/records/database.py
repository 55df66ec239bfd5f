"""Database: sessions on the archive's tables, which live beside the engine's, so that one commit can hold both."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pysqlite3.dbapi2
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.orm import Session

from apps.records.tables import Base

PATIENCE = 60.0  # seconds that a session waits for its turn
READERS = 8


class Database:
    """What is behind a URL that Holdfast takes, too; `prepare` is called once, before the first session."""

    def __init__(self, url: str, *, prepare: Callable[[], None]) -> None:
        scheme, _, rest = url.partition("://")
        self._is_sqlite = scheme == "sqlite"
        self._url = url if self._is_sqlite else f"postgresql+psycopg://{rest}"
        self._prepare, self._lock = prepare, threading.Lock()
        self._engines: tuple[Engine, Engine] | None = None

    @contextlib.contextmanager
    def read(self) -> Iterator[Session]:
        """A session that only looks."""
        with Session(self._open()[0]) as session:
            yield session

    @contextlib.contextmanager
    def write(self) -> Iterator[Session]:
        """A session that has the write lock from its beginning, and is committed at its end or rolled back."""
        with Session(self._open()[1], expire_on_commit=False) as session, session.begin():
            session.connection()
            yield session

    def close(self) -> None:
        with self._lock:
            for engine in self._engines or ():
                engine.dispose()
            self._engines = None

    def _open(self) -> tuple[Engine, Engine]:
        with self._lock:
            if self._engines is None:
                self._prepare()
                writes = self._engine(writes=True)
                Base.metadata.create_all(writes)
                self._engines = self._engine(writes=False), writes
            return self._engines

    def _engine(self, *, writes: bool) -> Engine:
        if not self._is_sqlite:
            return create_engine(
                self._url, pool_size=READERS, max_overflow=0, pool_timeout=PATIENCE, pool_pre_ping=True
            )
        engine = create_engine(
            self._url,
            module=pysqlite3.dbapi2,
            # One writer at a time is all that SQLite has: those who wait in a line each get in, at the file's lock not.
            pool_size=1 if writes else READERS,
            max_overflow=0,
            pool_timeout=PATIENCE,
            connect_args={"timeout": PATIENCE, "check_same_thread": False},
        )
        event.listen(engine, "connect", _connected)
        event.listen(engine, "begin", _begin_to_write if writes else _begin_to_read)
        return engine


def _connected(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # we say when a transaction begins, not the driver
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma synchronous = full")


def _begin_to_read(connection: Connection) -> None:
    connection.exec_driver_sql("begin")


def _begin_to_write(connection: Connection) -> None:
    # A transaction that reads first and writes later is refused while others write, however long it would wait.
    connection.exec_driver_sql("begin immediate")
