"""Database: sessions on ade's own tables, which live beside the engine's, so that one commit can hold both.

A session that writes takes SQLite's one write lock at once, and waits for its turn in the process first: those who wait
in a line each get in, those who wait at the file's lock may not.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pysqlite3.dbapi2
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from apps.ade.tables import Base
from holdfast import StoreBusy

DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
SQL_SERVER = "mssql+mssqlpython"
MOST_CONNECTIONS = 8
PATIENCE = 60.0
TURNS = 20


class Database:
    """What is behind a URL that Holdfast takes, too. `prepare` is called once before the first session."""

    def __init__(self, url: str, *, prepare: Callable[[], None]) -> None:
        scheme, _, rest = url.partition("://")
        self._url = f"{DRIVERS.get(scheme.partition('+')[0], SQL_SERVER)}://{rest}"
        self._is_sqlite = self._url.startswith("sqlite")
        self._prepare = prepare
        self._lock = threading.Lock()
        self._reads: Engine | None = None
        self._writes: Engine | None = None

    @contextlib.contextmanager
    def read(self) -> Iterator[Session]:
        """A session that only looks."""
        with _reachable(), Session(self._engines()[0]) as session:
            yield session

    @contextlib.contextmanager
    def write(self) -> Iterator[Session]:
        """A session that is committed at the end, or rolled back."""
        with _reachable(), Session(self._engines()[1], expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        for engine in (self._reads, self._writes):
            if engine is not None:
                engine.dispose()

    def _engines(self) -> tuple[Engine, Engine]:
        with self._lock:
            if self._reads is None or self._writes is None:
                self._prepare()
                writes = self._engine(writes=True)
                _create(writes)
                self._reads, self._writes = self._engine(writes=False), writes
            return self._reads, self._writes

    def _engine(self, *, writes: bool) -> Engine:
        if not self._is_sqlite:
            return create_engine(self._url, pool_size=MOST_CONNECTIONS, max_overflow=0, pool_timeout=PATIENCE)
        engine = create_engine(
            self._url,
            module=pysqlite3.dbapi2,
            pool_size=1 if writes else MOST_CONNECTIONS,
            max_overflow=0,
            pool_timeout=PATIENCE,
            connect_args={"timeout": PATIENCE, "check_same_thread": False},
        )
        event.listen(engine, "connect", _prepared)
        event.listen(engine, "begin", _begun_to_write if writes else _begun)
        return engine


@contextlib.contextmanager
def _reachable() -> Iterator[None]:
    """Say in the engine's words that the database is locked or away: whoever asked may ask again."""
    try:
        yield
    except (OperationalError, PoolTimeout) as error:
        raise StoreBusy(f"the database did not answer in time: {type(error).__name__}") from error


def new_id() -> str:
    """An id; later ones sort after earlier ones."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"


def _create(engine: Engine) -> None:
    """Make the tables that are not there; who finds that another process makes them at this moment looks again."""
    for left in reversed(range(TURNS)):
        try:
            return Base.metadata.create_all(engine)
        except DBAPIError:
            if not left:
                raise
            time.sleep(0.1)
    return None


def _prepared(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # we say when a transaction begins, not the driver
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma synchronous = full")


def _begun(connection: Connection) -> None:
    connection.exec_driver_sql("begin")


def _begun_to_write(connection: Connection) -> None:
    # A transaction that reads first and writes later is refused while others write, however long it would wait.
    connection.exec_driver_sql("begin immediate")
