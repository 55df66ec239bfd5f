"""Checks of a caller's connection: it must have an open transaction on the database of the store."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from tests.contract.caller_transaction.callers import POSTGRES_WAYS, SQLITE_WAYS, WAYS, caller, count, library
from tests.databases import Schemas, sqlite
from tests.listing import runs_of
from tests.postgres import PostgresServer, postgres_server

from holdfast import Holdfast, StoreBusy, WrongConnection
from holdfast.jobs.job import Job


@pytest.mark.contract("S2")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_a_submission_without_other_statements_commits_or_rolls_back_with_its_transaction(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, how: str
) -> None:
    """SQLAlchemy begins a transaction with the first statement; without a transaction, a commit has no effect."""

    async def scenario() -> None:
        async with caller(way, url) as tx:
            await tx.submit(job, "a")
            await getattr(tx, how)()

    asyncio.run(scenario())
    assert count(hf, "holdfast_runs") == (1 if how == "commit" else 0)


@pytest.mark.contract("S2", "S4")
@pytest.mark.parametrize("way", WAYS)
def test_a_connection_in_autocommit_mode_is_refused(hf: Holdfast, url: str, job: Job[[str], str], way: str) -> None:
    async def scenario() -> None:
        async with caller(way, url, "AUTOCOMMIT") as tx:
            await tx.execute("insert into orders values (1)")
            with pytest.raises(WrongConnection, match="no transaction is open"):
                await tx.submit(job, "a")
            await tx.rollback()

    asyncio.run(scenario())
    assert (count(hf, "orders"), count(hf, "holdfast_runs")) == (1, 0)


@pytest.mark.contract("S2", "S4")
@pytest.mark.parametrize("way", WAYS)
def test_another_database_with_tables_of_its_own_is_refused(
    request: pytest.FixtureRequest, hf: Holdfast, job: Job[[str], str], way: str, tmp_path: Path
) -> None:
    if way in SQLITE_WAYS:
        other_url, says = f"sqlite:///{tmp_path / 'other.db'}", "other.db, but the store uses .*joined.db"
    else:
        other_url = request.getfixturevalue("postgres_url")
        says = f"to database {other_url.rpartition('/')[2]}, but the store uses postgres"
    with Holdfast(other_url, **library(way)) as other:
        other.start()
        refused(job, way, other_url, says=says)
        assert (count(hf, "holdfast_runs"), count(other, "holdfast_runs")) == (0, 0)


@pytest.mark.contract("S2", "S4")
@pytest.mark.parametrize("way", POSTGRES_WAYS)
def test_another_schema_of_the_database_is_refused(
    hf: Holdfast, schemas: Schemas, job: Job[[str], str], way: str
) -> None:
    with schemas.lend() as other_url:
        refused(job, way, other_url, says="can't see the store's tables")


@pytest.fixture(scope="module")
def other_server() -> Iterator[PostgresServer]:
    with postgres_server(18, "--fsync=off") as server:
        yield server


@pytest.mark.contract("S2", "S4")
@pytest.mark.parametrize("way", POSTGRES_WAYS)
def test_a_database_of_the_same_name_on_another_server_is_refused(
    hf: Holdfast, other_server: PostgresServer, job: Job[[str], str], way: str
) -> None:
    with Holdfast(other_server.url) as other:
        other.start()
        refused(job, way, other_server.url, says="postgres on another server")
        assert (count(hf, "holdfast_runs"), count(other, "holdfast_runs")) == (0, 0)


def refused(job: Job[[str], str], way: str, url: str, *, says: str) -> None:
    async def scenario() -> None:
        async with caller(way, url) as tx:
            with pytest.raises(WrongConnection, match=says) as caught:
                await tx.submit(job, "a")
            assert caught.value.code == "wrong_connection"
            await tx.commit()

    asyncio.run(scenario())


@pytest.mark.contract("S2")
def test_a_restarted_server_is_recognised_as_the_same_database() -> None:
    with postgres_server(18, "--fsync=off") as server, Holdfast(server.url) as hf:

        @hf.job(name="work")
        def work() -> None: ...

        hf.start()
        for _ in range(2):
            with psycopg.connect(server.url) as connection:
                work.using(connection=connection).submit()
            server.kill()
            server.start()
        assert count(hf, "holdfast_runs") == 2


@pytest.mark.contract("S4")
@pytest.mark.parametrize("way", ["aiosqlite session", "asyncpg session"])
def test_an_async_drivers_own_connection_is_refused(hf: Holdfast, url: str, job: Job[[str], str], way: str) -> None:
    """Holdfast can use an async driver only through SQLAlchemy, from a function that is not async."""

    async def scenario() -> None:
        async with own_connection(way, url) as connection:
            with pytest.raises(WrongConnection, match="are not supported"):
                await job.using(connection=connection).asubmit("a")

    asyncio.run(scenario())
    assert count(hf, "holdfast_runs") == 0


@contextlib.asynccontextmanager
async def own_connection(way: str, url: str) -> AsyncIterator[Any]:
    if way.startswith("aiosqlite"):
        async with aiosqlite.connect(url.removeprefix("sqlite:///")) as connection:
            await connection.execute("begin")
            yield connection
    else:
        opened = await asyncpg.connect(url)
        async with opened.transaction():
            yield opened
        await opened.close()


@pytest.mark.contract("P4", "S4")
@pytest.mark.parametrize("way", SQLITE_WAYS)
def test_a_lock_that_cannot_be_taken_raises_store_busy(hf: Holdfast, url: str, job: Job[[str], str], way: str) -> None:
    async def scenario() -> None:
        async with caller(way, url) as tx:
            await tx.execute("pragma busy_timeout = 0")
            with pytest.raises(StoreBusy, match="using\\(connection="):
                await tx.submit(job, "a")

    with hf.store.transaction():
        asyncio.run(scenario())
    assert count(hf, "holdfast_runs") == 0


@pytest.mark.contract("S2")
@pytest.mark.parametrize("way", ["sqlite3"])
def test_a_sqlite_connection_may_have_its_own_row_factory(hf: Holdfast, url: str, job: Job[[str], str]) -> None:
    def as_dict(cursor: Any, row: Any) -> dict[str, Any]:
        return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}

    with contextlib.closing(sqlite.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.row_factory = as_dict
        first = job.using(connection=connection, idempotency_key="i").submit("a")
        assert job.using(connection=connection, idempotency_key="i").submit("a").id == first.id
        connection.commit()
    assert count(hf, "holdfast_runs") == 1


def autocommitting(module: Any) -> Any:
    """A class of connections that look as if opened with `autocommit=True` on Python 3.12 or newer."""
    return type("Connection", (module.Connection,), {"autocommit": True})


@pytest.mark.contract("S2", "S4")
@pytest.mark.parametrize("way", ["sqlite3", "aiosqlite session"])
def test_the_autocommit_attribute_of_sqlite3_overrides_its_isolation_level(
    hf: Holdfast, url: str, job: Job[[str], str], way: str
) -> None:
    path = url.removeprefix("sqlite:///")

    async def scenario() -> None:
        if way == "sqlite3":
            with contextlib.closing(sqlite.connect(path, factory=autocommitting(sqlite))) as own, refusal():
                job.using(connection=own).submit("a")
        else:
            settings = {"factory": autocommitting(sqlite3)}
            engine = create_async_engine(f"sqlite+aiosqlite:///{path}", connect_args=settings)
            async with AsyncSession(engine) as session:
                with refusal():
                    await job.using(connection=session).asubmit("a")
            await engine.dispose()

    def refusal() -> Any:
        return pytest.raises(WrongConnection, match="no transaction is open")

    asyncio.run(scenario())
    assert count(hf, "holdfast_runs") == 0


def test_a_connection_in_pipeline_mode_is_refused(postgres_url: str) -> None:
    with Holdfast(postgres_url) as hf, psycopg.connect(postgres_url) as caller:

        @hf.job(name="work")
        def work() -> None: ...

        hf.start()
        with caller.pipeline(), pytest.raises(WrongConnection):
            work.using(connection=caller).submit()
        caller.commit()
        assert runs_of(hf) == []
