"""The databases of a world (a SQLite file, or separate tables in PostgreSQL), and how the oracle reads them."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import psycopg
from tests.mutants import statements

from holdfast import Holdfast
from holdfast.store.dialects.postgres import PostgresDialect
from holdfast.store.queries import named, sources
from holdfast.support.clock import Clock
from holdfast.support.ids import Ids


class Database(Protocol):
    replaced: dict[str, str]

    def engine(self, clock: Clock, ids: Ids) -> Holdfast:
        """Return the Holdfast of a new process."""
        ...

    def connection(self, hf: Holdfast) -> Any:
        """Return a caller's own connection, with an open transaction."""
        ...

    def rows(self, *statements: str) -> list[list[tuple[Any, ...]]]:
        """Execute the queries of the oracle, in which the names of tables begin with `holdfast_`."""
        ...

    def stamp(self) -> object:
        """A value that changes after every commit that wrote something."""
        ...

    def instant(self, value: Any) -> datetime | None: ...
    def close(self) -> None: ...


SETTINGS: dict[str, Any] = {"listen": False, "lease": 15, "poll_interval": 1, "kill_grace": 5, "run_log_level": "error"}


@dataclass
class SqliteDatabase:
    path: Path
    replaced: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.path.write_bytes(_migrated())
        with Holdfast(f"sqlite:///{self.path}", synchronous="normal") as hf:
            self._connection = hf._store.dialect.connect()

    def engine(self, clock: Clock, ids: Ids) -> Holdfast:
        hf = Holdfast(f"sqlite:///{self.path}", clock=clock, ids=ids, synchronous="normal", busy_timeout=0, **SETTINGS)
        statements.use(hf, self.replaced)
        return hf

    def connection(self, hf: Holdfast) -> Any:
        connection = hf.store.dialect.connect()
        connection.execute("begin immediate")
        return connection

    def rows(self, *statements: str) -> list[list[tuple[Any, ...]]]:
        return [list(self._connection.execute(sql).fetchall()) for sql in statements]

    def stamp(self) -> object:
        return self._connection.execute("pragma data_version").fetchone()

    def instant(self, value: Any) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value).replace(tzinfo=UTC)

    def close(self) -> None:
        self._connection.close()


@cache
def _migrated() -> bytes:
    """The file of a database with empty tables, created only once."""
    with tempfile.TemporaryDirectory(prefix="holdfast-simulation-") as folder:
        file = Path(folder) / "work.db"
        with Holdfast(f"sqlite:///{file}", synchronous="normal") as hf:
            hf.start()
        return file.read_bytes()


@dataclass
class PostgresDatabase:
    """The world's clock replaces the server's own, which is never read."""

    url: str
    prefix: str
    replaced: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with Holdfast(self.url, table_prefix=self.prefix) as hf:
            hf.start()
        self._connection = psycopg.connect(self.url, autocommit=True)
        self._connection.execute("set datestyle = 'ISO'")

    def engine(self, clock: Clock, ids: Ids) -> Holdfast:
        hf = Holdfast(self.url, clock=clock, ids=ids, busy_timeout=0.2, table_prefix=self.prefix, **SETTINGS)
        hf.notifier._announcer = None
        dialect = hf._store.dialect
        assert isinstance(dialect, PostgresDialect)
        dialect.server_time = lambda connection, clock: clock.wall()  # type: ignore[method-assign]
        clocked = {
            name: text.replace("clock_timestamp()", "cast(null as timestamptz)")
            for name, text in (sources("postgres") | self.replaced).items()
            if "clock_timestamp()" in text or name in self.replaced
        }
        statements.use(hf, clocked)
        return hf

    def connection(self, hf: Holdfast) -> Any:
        connection = psycopg.connect(self.url)
        connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        connection.execute("set local lock_timeout = '200ms'")
        return connection

    def rows(self, *statements: str) -> list[list[tuple[Any, ...]]]:
        with self._connection.pipeline():
            cursors = [self._connection.execute(named(sql, self.prefix)) for sql in statements]
        return [cursor.fetchall() for cursor in cursors]

    def stamp(self) -> object:
        return self._connection.execute("select cast(pg_current_snapshot() as text)").fetchone()

    def instant(self, value: Any) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def close(self) -> None:
        tables = self._connection.execute(
            "select tablename from pg_tables where starts_with(tablename, %s)", [self.prefix]
        ).fetchall()
        for (table,) in tables:
            self._connection.execute(f'drop table "{table}" cascade')
        self._connection.close()


@contextlib.contextmanager
def sqlite_database(replaced: dict[str, str] | None = None) -> Iterator[SqliteDatabase]:
    """A SQLite database, in memory if the system has /dev/shm."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-simulation-", dir=memory if memory.is_dir() else None))
    try:
        database = SqliteDatabase(folder / "work.db", replaced or {})
        yield database
        database.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def postgres_database(url: str, prefix: str, replaced: dict[str, str] | None = None) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(url, prefix, replaced or {})
    try:
        yield database
    finally:
        database.close()
