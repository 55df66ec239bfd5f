"""Connections and sessions of the application, for every supported driver and library."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pysqlite3.dbapi2 as pysqlite3
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from tests.databases import Schemas, sqlite

from holdfast import Holdfast
from holdfast.jobs.job import Job

SQLITE_WAYS = ["sqlite3", "sqlite3 connection", "sqlite3 session", "aiosqlite connection", "aiosqlite session"]
PYSQLITE3_WAYS = ["pysqlite3", "pysqlite3 connection", "pysqlite3 session"]
POSTGRES_WAYS = [
    "psycopg",
    "psycopg connection",
    "psycopg session",
    "psycopg async connection",
    "psycopg async session",
    "asyncpg connection",
    "asyncpg session",
]
WAYS = [*SQLITE_WAYS, *POSTGRES_WAYS]
LIBRARIES = {"sqlite3": sqlite, "pysqlite3": pysqlite3}


@contextlib.contextmanager
def joined(request: pytest.FixtureRequest, way: str, folder: Path) -> Iterator[Holdfast]:
    """A Holdfast on a database that a caller can use in this way, with an additional table `orders`."""
    with contextlib.ExitStack() as opened:
        if "sqlite" in way:
            url = f"sqlite:///{folder / 'joined.db'}"
        else:
            schemas: Schemas = request.getfixturevalue("schemas")
            url = opened.enter_context(schemas.lend())
        hf = opened.enter_context(Holdfast(url, **library(way)))
        hf.start()
        hf.do(lambda tx: tx.execute_ddl("create table orders (id integer)"))
        yield hf
        hf.do(lambda tx: tx.execute_ddl("drop table orders"))


def library(way: str) -> dict[str, Any]:
    """The setting `sqlite_module` for this way; aiosqlite always uses sqlite3."""
    named = {"aiosqlite": "sqlite3", "pysqlite3": "pysqlite3"}
    return {"sqlite_module": named[driver]} if (driver := way.partition(" ")[0]) in named else {}


def count(hf: Holdfast, table: str) -> int:
    """Count rows through the store, so that no second SQLite library opens the file."""

    def ask(tx: Any) -> int:
        found: int = tx._session.execute(f"select count(*) from {table}", None)[0][0][0]
        return found

    return hf.read(ask)


class Caller:
    """A caller's transaction with any driver."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def execute(self, statement: str) -> Any:
        """The first value of the first row, if there are rows."""
        is_driver = isinstance(self.connection, psycopg.Connection | sqlite.Connection | pysqlite3.Connection)
        done = await _awaited(self.connection.execute(statement if is_driver else sqlalchemy.text(statement)))
        row = done.fetchone() if getattr(done, "returns_rows", getattr(done, "description", None)) else None
        return None if row is None else row[0]

    async def submit(self, job: Job[..., Any], *args: Any, **options: Any) -> Any:
        return await job.using(connection=self.connection, **options).asubmit(*args)

    async def submit_many(self, job: Job[..., Any], many: list[dict[str, Any]]) -> list[Any]:
        """Use `asubmit_many` with an async connection and `submit_many` with any other."""
        joining = job.using(connection=self.connection)
        is_async = isinstance(self.connection, AsyncSession | AsyncConnection)
        return await joining.asubmit_many(many) if is_async else joining.submit_many(many)

    async def commit(self) -> None:
        await _awaited(self.connection.commit())

    async def rollback(self) -> None:
        await _awaited(self.connection.rollback())

    @contextlib.asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """A savepoint. After an error, the transaction is rolled back to it; in any case it is released at the end."""
        if isinstance(self.connection, AsyncSession | AsyncConnection):
            async with self.connection.begin_nested():
                yield
        elif isinstance(self.connection, Session | sqlalchemy.Connection):
            with self.connection.begin_nested():
                yield
        else:
            self.connection.execute("savepoint a")
            try:
                yield
            except BaseException:
                self.connection.execute("rollback to a")
                raise
            finally:
                self.connection.execute("release a")


@contextlib.asynccontextmanager
async def caller(way: str, url: str, isolation: str | None = None, *, options: str = "") -> AsyncIterator[Caller]:
    """Connect in one of `WAYS`; `isolation` is a level as SQLAlchemy names it, `options` are those of libpq."""
    driver, _, kind = way.rpartition(" ") if " " in way else (way, "", "")
    if not kind:
        with contextlib.closing(_driver_connection(driver, url, isolation, options)) as own:
            yield Caller(own)
        return
    address, settings = _engine(driver, url, options)
    if isolation is not None:
        settings["isolation_level"] = isolation
    if driver in ("aiosqlite", "asyncpg", "psycopg async"):
        aengine = create_async_engine(address, **settings)
        async with AsyncSession(aengine) if kind == "session" else aengine.connect() as opened:
            yield Caller(opened)
        await aengine.dispose()
    else:
        engine = sqlalchemy.create_engine(address, **settings)
        with Session(engine) if kind == "session" else engine.connect() as found:
            yield Caller(found)
        engine.dispose()


def _driver_connection(driver: str, url: str, isolation: str | None, options: str) -> Any:
    autocommit = isolation == "AUTOCOMMIT"
    if "sqlite" in driver:
        path = url.removeprefix("sqlite:///")
        return LIBRARIES[driver].connect(path, isolation_level=None if autocommit else "")
    connection = psycopg.connect(url, options=options, autocommit=autocommit)
    if isolation is not None and not autocommit:
        connection.set_isolation_level(psycopg.IsolationLevel[isolation.replace(" ", "_")])
    return connection


def _engine(driver: str, url: str, options: str) -> tuple[str, dict[str, Any]]:
    scheme, _, rest = url.partition(":")
    match driver:
        case "sqlite3" | "pysqlite3":
            return url, {"module": LIBRARIES[driver]}
        case "aiosqlite":
            return f"{scheme}+aiosqlite:{rest}", {}
        case "asyncpg":
            parts = dict(part.strip().split("=") for part in options.split("-c ") if part)
            return f"{scheme}+asyncpg:{rest}", {"connect_args": {"server_settings": parts}}
    return f"{scheme}+psycopg:{rest}", {"connect_args": {"options": options}}


async def _awaited(done: Any) -> Any:
    return await done if asyncio.iscoroutine(done) else done
