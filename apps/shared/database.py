"""Database: an application's own tables, which live beside the engine's, so that one commit can hold both.

A session that writes takes SQLite's one write lock at once, and waits for its turn in the process first: those who wait
in a line each get in, those who wait at the file's lock may not.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, DateTime, Dialect, Engine, MetaData, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session
from sqlalchemy.types import TypeDecorator

from holdfast import Holdfast, InvalidSetting, StoreBusy

DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
SQL_SERVER = {"mssql": "mssql+mssqlpython", "sqlserver": "mssql+mssqlpython"}
CONNECTIONS = 8
PATIENCE = 60.0  # seconds that a session waits for its turn
TURNS, TURN = 20, 0.1


class Instant(TypeDecorator[datetime]):
    """A moment in UTC; what comes out has its zone, whatever the database keeps."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)


class Database:
    """What is behind a URL that Holdfast takes, too.

    prepare   called once, before the first session: `hf.start`, which makes the engine's tables
    complete  called once with a connection, when the tables are there: views, triggers, indexes
    opened    called with each new connection of the driver
    sqlite_module  the SQLite library, which must be the engine's: two in one process drop each other's locks
    sql_server  whether the application can keep its tables in SQL Server, too
    """

    def __init__(
        self,
        url: str,
        tables: MetaData,
        *,
        prepare: Callable[[], None],
        complete: Callable[[Connection], None] = lambda connection: None,
        opened: Callable[[Any], None] = lambda connection: None,
        sqlite_module: str = "sqlite3",
        sql_server: bool = False,
    ) -> None:
        scheme, _, rest = url.partition("://")
        driver = (DRIVERS | SQL_SERVER if sql_server else DRIVERS).get(scheme.partition("+")[0])
        if driver is None:
            raise InvalidSetting("HOLDFAST_URL: this application keeps its tables in SQLite or PostgreSQL")
        self._url = f"{driver}://{rest}"
        self.is_sqlite = self._url.startswith("sqlite")
        self._tables, self._prepare, self._complete, self._opened = tables, prepare, complete, opened
        self._sqlite_module = sqlite_module
        self._lock = threading.Lock()
        self._engines: tuple[Engine, Engine] | None = None

    @contextlib.contextmanager
    def read(self) -> Iterator[Session]:
        """A session that only looks: it waits for nobody, and nobody waits for it."""
        with _reachable(), Session(self._open()[0]) as session:
            yield session

    @contextlib.contextmanager
    def write(self) -> Iterator[Session]:
        """A session that may write from its beginning on, and is committed at its end or rolled back."""
        with _reachable(), Session(self._open()[1], expire_on_commit=False) as session, session.begin():
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
                try:
                    self._make(writes)
                except BaseException:
                    writes.dispose()
                    raise
                self._engines = self._engine(writes=False), writes
            return self._engines

    def _engine(self, *, writes: bool) -> Engine:
        # Whatever the server's default is: a submission to a bounded queue needs this isolation.
        options: dict[str, Any] = {
            "pool_size": CONNECTIONS,
            "pool_pre_ping": True,
            "isolation_level": "READ COMMITTED",
        }
        if self.is_sqlite:
            library = importlib.import_module(f"{self._sqlite_module}.dbapi2")
            options = {"module": library, "pool_size": 1 if writes else CONNECTIONS}
            options["connect_args"] = {"timeout": PATIENCE, "check_same_thread": False}
        engine = create_engine(self._url, max_overflow=0, pool_timeout=PATIENCE, **options)
        if self.is_sqlite:
            event.listen(engine, "connect", _prepare_connection)
            # A transaction that reads first and writes later is refused while others write, however long it would wait.
            begin = "begin immediate" if writes else "begin"
            event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        event.listen(engine, "connect", lambda connection, record: self._opened(connection))
        return engine

    def _make(self, engine: Engine) -> None:
        """Make what is not there; who finds that another process makes it at this moment looks again."""
        for left in reversed(range(TURNS)):
            try:
                with engine.begin() as connection:
                    self._tables.create_all(connection)
                    self._complete(connection)
                return
            except DBAPIError:
                if not left:
                    raise
                time.sleep(TURN)


def engine_prefix(hf: Holdfast) -> str:
    """What the names of the engine's views begin with, with their schema if they have one."""
    schema, prefix = hf.settings.schema_name, hf.settings.prefix
    return prefix if schema is None else f"{schema}.{prefix}"


@contextlib.contextmanager
def _reachable() -> Iterator[None]:
    """Say in the engine's words that the database is locked or away: whoever asked may ask again."""
    try:
        yield
    except (OperationalError, PoolTimeout) as error:
        raise StoreBusy(f"the database did not answer in time: {type(error).__name__}") from error


def _prepare_connection(connection: Any, record: Any) -> None:
    """Open SQLite's connections as Holdfast does."""
    connection.isolation_level = None  # we say when a transaction begins, not the driver
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma synchronous = full")
    connection.execute("pragma wal_autocheckpoint = 0")  # Holdfast checkpoints, when no one writes
