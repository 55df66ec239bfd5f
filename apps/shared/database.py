"""Database: an application's own tables, in the same database as the engine's, so that one commit can write both.

On SQLite, a writing session takes the write lock at its start. The writers of one process share a single connection,
and use it one after the other. If each writer waited for the file's lock instead, SQLite would not serve them in order,
and some writers could wait for ever.
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
WAIT_SECONDS = 60.0  # how long a session waits for a connection or for SQLite's lock
CREATE_ATTEMPTS, CREATE_PAUSE = 20, 0.1


class Instant(TypeDecorator[datetime]):
    """A point in time in UTC. Values read back always have a time zone, even if the database stores none."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)


class Database:
    """The application's tables, at the same URL as Holdfast's.

    prepare        called once, before the first session; pass `hf.start`, which creates the engine's tables
    complete       called once with a connection after the tables are created; for views, triggers and indexes
    opened         called with each new connection of the driver
    sqlite_module  the SQLite library. It must be the one that the engine uses: two SQLite libraries in one process
                   drop each other's file locks
    sql_server     True if the application's tables also work on SQL Server
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
            supported = "SQLite, PostgreSQL and SQL Server" if sql_server else "SQLite and PostgreSQL"
            raise InvalidSetting(
                f"HOLDFAST_URL: this application supports only {supported}; use, say, sqlite:///… or postgresql://…"
            )
        self._url = f"{driver}://{rest}"
        self.is_sqlite = self._url.startswith("sqlite")
        self._tables, self._prepare, self._complete, self._opened = tables, prepare, complete, opened
        self._sqlite_module = sqlite_module
        self._lock = threading.Lock()
        self._engines: tuple[Engine, Engine] | None = None

    @contextlib.contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session for reading; it takes no lock that a writer waits for."""
        with _busy_if_unreachable(), Session(self._open()[0]) as session:
            yield session

    @contextlib.contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session for writing; commit it at the end, or roll it back if an exception is raised."""
        with _busy_if_unreachable(), Session(self._open()[1], expire_on_commit=False) as session, session.begin():
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
                    self._create_tables(writes)
                except BaseException:
                    writes.dispose()
                    raise
                self._engines = self._engine(writes=False), writes
            return self._engines

    def _engine(self, *, writes: bool) -> Engine:
        # A submission to a bounded queue needs this isolation level, whatever the server's default is.
        options: dict[str, Any] = {
            "pool_size": CONNECTIONS,
            "pool_pre_ping": True,
            "isolation_level": "READ COMMITTED",
        }
        if self.is_sqlite:
            library = importlib.import_module(f"{self._sqlite_module}.dbapi2")
            options = {"module": library, "pool_size": 1 if writes else CONNECTIONS}
            options["connect_args"] = {"timeout": WAIT_SECONDS, "check_same_thread": False}
        engine = create_engine(self._url, max_overflow=0, pool_timeout=WAIT_SECONDS, **options)
        if self.is_sqlite:
            event.listen(engine, "connect", _prepare_connection)
            # A transaction that reads first and writes later fails with SQLITE_BUSY at once if another transaction has
            # written in between, no matter how long the timeout is.
            begin = "begin immediate" if writes else "begin"
            event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        event.listen(engine, "connect", lambda connection, record: self._opened(connection))
        return engine

    def _create_tables(self, engine: Engine) -> None:
        """Create the tables that do not exist yet; try again if another process is creating them at the same time."""
        for attempts_left in reversed(range(CREATE_ATTEMPTS)):
            try:
                with engine.begin() as connection:
                    self._tables.create_all(connection)
                    self._complete(connection)
                return
            except DBAPIError:
                if not attempts_left:
                    raise
                time.sleep(CREATE_PAUSE)


def engine_prefix(hf: Holdfast) -> str:
    """Return the prefix of the engine's table and view names, with the schema if one is set."""
    schema, prefix = hf.settings.schema_name, hf.settings.table_prefix
    return prefix if schema is None else f"{schema}.{prefix}"


@contextlib.contextmanager
def _busy_if_unreachable() -> Iterator[None]:
    """Raise the engine's StoreBusy if the database is locked or unreachable, so that the client may try again."""
    try:
        yield
    except (OperationalError, PoolTimeout) as error:
        raise StoreBusy(f"the database did not answer in time ({type(error).__name__}); try again") from error


def _prepare_connection(connection: Any, record: Any) -> None:
    """Configure an SQLite connection as Holdfast configures its own."""
    connection.isolation_level = None  # the driver must not begin transactions by itself
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma synchronous = full")
    connection.execute("pragma wal_autocheckpoint = 0")  # Holdfast makes the checkpoints, when nothing is being written
