"""Joining: a submission inside the caller's own transaction is there if that commits, and was never if it does not."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pysqlite3.dbapi2 as pysqlite3
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from tests.databases import sqlite

from holdfast import Holdfast, IdempotencyConflict, StoreBusy, UnknownNeed, WrongConnection, WrongSqliteLibrary
from holdfast.jobs.job import Job
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.conftest import Database

# Ways into a caller's transaction: the store, the driver, and how the caller holds it.
WAYS = [
    "pysqlite3",
    "pysqlite3 immediate",
    "pysqlite3 sqlalchemy connection",
    "pysqlite3 sqlalchemy session",
    "sqlite3",
    "sqlite3 sqlalchemy session",
    "psycopg",
    "psycopg transaction block",
    "psycopg sqlalchemy connection",
    "psycopg sqlalchemy session",
]
ASYNC_WAYS = ["aiosqlite", "asyncpg", "psycopg async"]


@pytest.fixture
def joined_url(request: pytest.FixtureRequest, way: str, tmp_path: Path) -> str:
    if "psycopg" in way or way == "asyncpg":
        found: str = request.getfixturevalue("postgres_url")
        return found
    return f"sqlite:///{tmp_path / 'joined.db'}"


@pytest.fixture
def joined(joined_url: str, way: str) -> Iterator[Holdfast]:
    module = "sqlite3" if way.startswith(("sqlite3", "aiosqlite")) else "pysqlite3"
    with Holdfast(joined_url, sqlite_module=module) as hf:
        yield hf


@pytest.fixture
def job(joined: Holdfast) -> Job[[str], str]:
    @joined.job(name="work", key="name")
    def work(name: str) -> str:
        return name

    joined.start()
    return work


@contextlib.contextmanager
def caller(way: str, url: str) -> Iterator[Any]:
    """A connection with an open transaction that has a row of the caller's own; ended by the test."""
    path = url.removeprefix("sqlite:///")
    match way:
        case "pysqlite3":
            opened = pysqlite3.connect(path)  # the driver begins by itself, deferred
        case "pysqlite3 immediate":
            opened = pysqlite3.connect(path, isolation_level=None)
            opened.execute("begin immediate")
        case "sqlite3":
            opened = sqlite3.connect(path)
        case "psycopg":
            opened = psycopg.connect(url)
        case "psycopg transaction block":
            opened = psycopg.connect(url, autocommit=True)
            opened.execute("begin")
        case _:
            engine = sqlalchemy.create_engine(_sqlalchemy_url(way, url), **_module(way))
            opened = sqlalchemy.orm.Session(engine) if "session" in way else engine.connect()
    try:
        yield opened
    finally:
        opened.close()
        if "sqlalchemy" in way:
            engine.dispose()


def _module(way: str) -> dict[str, Any]:
    return {"module": pysqlite3} if way.startswith("pysqlite3") else {}


def _sqlalchemy_url(way: str, url: str) -> str:
    if url.startswith("sqlite"):
        return url.replace("sqlite:", "sqlite+aiosqlite:") if way == "aiosqlite" else url
    return url.replace("postgresql:", "postgresql+asyncpg:" if way == "asyncpg" else "postgresql+psycopg:")


def execute(connection: Any, statement: str) -> Any:
    text = sqlalchemy.text(statement) if isinstance(connection, Session | sqlalchemy.Connection) else statement
    return connection.execute(text)


def finish(connection: Any, how: str) -> None:
    if getattr(connection, "autocommit", None) is True or getattr(connection, "isolation_level", "") is None:
        connection.execute(how)
    else:
        getattr(connection, how)()


def make_orders(url: str, way: str) -> None:
    module = sqlite3 if way.startswith(("sqlite3", "aiosqlite")) else pysqlite3
    connection: Any = psycopg.connect(url) if url.startswith("postgres") else module.connect(url[len("sqlite:///") :])
    with contextlib.closing(connection):
        connection.execute("create table orders (id integer)")
        connection.commit()


def count(hf: Holdfast, table: str) -> int:
    """Asked through the store, so that no second SQLite library touches the file."""

    def ask(tx: Any) -> int:
        found: int = tx._session.execute(f"select count(*) from {table}", None)[0][0][0]
        return found

    return hf.read(ask)


@pytest.mark.contract("S2", "P4")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_both_or_neither(joined: Holdfast, joined_url: str, job: Job[[str], str], way: str, how: str) -> None:
    make_orders(joined_url, way)

    with caller(way, joined_url) as connection:
        execute(connection, "insert into orders values (1)")
        run = job.using(connection=connection).submit("a")
        many = job.using(connection=connection).submit_many([{"name": "b"}, {"name": "a"}])
        assert count(joined, "holdfast_runs") == 0, "seen by others before the caller's commit"
        finish(connection, how)

    expected = 1 if how == "commit" else 0
    assert count(joined, "orders") == expected
    assert count(joined, "holdfast_runs") == 3 * expected
    assert joined.verify() == []
    if expected:
        Manual(joined).run_all()
        assert [one.result(timeout=1) for one in (run, *many)] == ["a", "b", "a"]


@pytest.mark.contract("S2")
@pytest.mark.parametrize("way", ASYNC_WAYS)
@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_both_or_neither_for_async_sessions(
    joined: Holdfast, joined_url: str, job: Job[[str], str], way: str, how: str
) -> None:
    make_orders(joined_url, way)

    async def scene() -> None:
        engine = create_async_engine(_sqlalchemy_url(way, joined_url))
        async with AsyncSession(engine) as session:
            await session.execute(sqlalchemy.text("insert into orders values (1)"))
            await job.using(connection=session).asubmit("a")
            await job.using(connection=session).asubmit_many([{"name": "b"}, {"name": "a"}])
            assert await asyncio.to_thread(count, joined, "holdfast_runs") == 0
            await getattr(session, how)()
        async with engine.begin() as connection:
            if how == "commit":
                await job.using(connection=connection, idempotency_key="k").asubmit("c")
                await job.using(connection=connection, idempotency_key="k").asubmit("c")
        await engine.dispose()

    asyncio.run(scene())

    expected = 1 if how == "commit" else 0
    assert count(joined, "orders") == expected
    assert count(joined, "holdfast_runs") == 4 * expected
    assert joined.verify() == []
    assert Manual(joined).run_all() == 4 * expected


@pytest.mark.contract("S2", "S4")
@pytest.mark.parametrize("way", WAYS)
def test_a_refused_submission_leaves_the_callers_transaction_usable(
    joined: Holdfast, joined_url: str, job: Job[[str], str], way: str
) -> None:
    job.using(idempotency_key="k").submit("a")
    make_orders(joined_url, way)

    with caller(way, joined_url) as connection:
        execute(connection, "insert into orders values (1)")
        with pytest.raises(IdempotencyConflict):
            job.using(connection=connection, idempotency_key="k").submit("other")
        with pytest.raises(UnknownNeed):
            job.using(connection=connection, after=["nothing"]).submit("b")
        finish(connection, "commit")

    assert count(joined, "orders") == 1
    assert count(joined, "holdfast_runs") == 1
    assert joined.verify() == []


@pytest.mark.contract("S2", "P3")
@pytest.mark.parametrize("way", ["pysqlite3 immediate", "psycopg"])
def test_a_joined_submission_takes_no_key_so_that_others_never_wait_for_the_caller(
    joined: Holdfast, joined_url: str, job: Job[[str], str], way: str
) -> None:
    with caller(way, joined_url) as connection:
        run = job.using(connection=connection).submit("a")
        if way == "psycopg":
            other = job.submit("a")  # returns at once although the caller's transaction is open
            assert other.snapshot.place == "ready"
        finish(connection, "commit")

    assert count(joined, "holdfast_holds") == (1 if way == "psycopg" else 0)
    assert run.refresh().snapshot.place == "waits"
    Manual(joined).run_all()
    assert run.result(timeout=1) == "a"


@pytest.mark.contract("S4")
def test_a_connection_of_another_sqlite_library_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    with Holdfast(sqlite_url, sqlite_module="pysqlite3") as hf:

        @hf.job(name="work")
        def work() -> None: ...

        hf.start()
        # Another file: opening the store's own with two libraries is the very thing that must not be.
        with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection:
            with pytest.raises(WrongSqliteLibrary, match="module=") as caught:
                work.using(connection=connection).submit()
        engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'other.db'}")
        with engine.connect() as other, pytest.raises(WrongSqliteLibrary):
            work.using(connection=other).submit()
        engine.dispose()

        async def scene() -> None:
            aengine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'other.db'}")
            async with AsyncSession(aengine) as session:
                with pytest.raises(WrongSqliteLibrary):
                    await work.using(connection=session).asubmit()
            await aengine.dispose()

        asyncio.run(scene())
        assert caught.value.code == "wrong_sqlite_library"
        assert count(hf, "holdfast_runs") == 0


@pytest.mark.contract("S4")
def test_a_connection_to_another_database_is_refused(hf: Holdfast, database: Database, tmp_path: Path) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    hf.start()
    before = database.counts()
    with contextlib.closing(sqlite.connect(str(tmp_path / "elsewhere.db"))) as connection:
        with pytest.raises(WrongConnection) as caught:
            work.using(connection=connection).submit()
    for nonsense in (object(), "connection", hf):
        with pytest.raises(WrongConnection):
            work.using(connection=nonsense).submit()
    assert caught.value.code == "wrong_connection"
    assert database.counts() == before


@pytest.mark.contract("S4")
def test_another_postgres_database_is_refused(postgres_url: str, postgres: Any) -> None:
    with Holdfast(postgres_url) as hf:

        @hf.job(name="work")
        def work() -> None: ...

        hf.start()
        with psycopg.connect(postgres.url) as connection, pytest.raises(WrongConnection, match="database"):
            work.using(connection=connection).submit()


@pytest.mark.contract("S4", "S2")
def test_a_connection_without_a_transaction_is_refused(hf: Holdfast, database: Database) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    hf.start()
    with contextlib.closing(database.connect()) as connection:
        with pytest.raises(WrongConnection, match="no transaction is open"):
            work.using(connection=connection).submit()
    assert database.count("runs") == 0


@pytest.mark.contract("S4")
def test_an_async_session_is_refused_by_submit(hf: Holdfast) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    async def scene() -> None:
        engine = create_async_engine("sqlite+aiosqlite://")
        async with AsyncSession(engine) as session:
            with pytest.raises(WrongConnection, match="asubmit"):
                work.using(connection=session).submit()
        await engine.dispose()

    asyncio.run(scene())


@pytest.mark.contract("P4", "S4")
def test_a_deferred_transaction_that_can_not_take_the_lock_says_store_busy_and_writes_nothing(
    sqlite_url: str,
) -> None:
    """It has read, someone has written since: SQLite will never let it write."""
    with Holdfast(sqlite_url) as hf:

        @hf.job(name="work")
        def work() -> None: ...

        hf.start()
        path = sqlite_url.removeprefix("sqlite:///")
        with contextlib.closing(sqlite.connect(path, isolation_level=None)) as connection:
            connection.execute("begin deferred")
            connection.execute("select count(*) from holdfast_runs").fetchall()
            work.submit()

            with pytest.raises(StoreBusy) as caught:
                work.using(connection=connection).submit()

            assert caught.value.code == "store_busy"
            connection.execute("rollback")
        assert count(hf, "holdfast_runs") == 1


@pytest.mark.contract("P4", "S4")
def test_a_lock_that_someone_else_keeps_ends_in_store_busy_and_nothing_written(sqlite_url: str) -> None:
    with Holdfast(sqlite_url, busy_timeout=0.05) as hf:

        @hf.job(name="work")
        def work() -> None: ...

        hf.start()
        with contextlib.closing(sqlite.connect(sqlite_url[len("sqlite:///") :], isolation_level=None)) as holder:
            holder.execute("begin immediate")
            with pytest.raises(StoreBusy):
                work.submit()
            with pytest.raises(StoreBusy):
                work.submit_many([{}])
            with pytest.raises(StoreBusy):
                asyncio.run(work.asubmit())
            holder.execute("rollback")
        assert count(hf, "holdfast_runs") == 0
        work.submit()


@pytest.mark.contract("P4")
def test_a_write_takes_the_lock_before_it_reads(sqlite_url: str) -> None:
    """Two writers never both believe that they may: the second waits at its begin."""
    with Holdfast(sqlite_url, busy_timeout=0.05) as hf:
        with hf.store.transaction(), contextlib.closing(sqlite.connect(sqlite_url[10:], timeout=0)) as other:
            with pytest.raises(sqlite.OperationalError, match="locked"):
                other.execute("begin immediate")


@pytest.mark.contract("P4")
def test_a_joined_submission_that_begins_the_transaction_takes_the_lock_before_it_reads(sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:

        @hf.job(name="work")
        def work() -> None: ...

        needed = work.submit()
        path, inside, unlocked = sqlite_url.removeprefix("sqlite:///"), [], []
        with (
            contextlib.closing(sqlite.connect(path)) as connection,
            contextlib.closing(sqlite.connect(path, timeout=0, isolation_level=None)) as other,
        ):

            def before(statement: str) -> None:
                if not connection.in_transaction:
                    return
                inside.append(statement)
                with contextlib.suppress(sqlite.OperationalError):
                    other.execute("begin immediate")
                    other.execute("rollback")
                    unlocked.append(statement)

            connection.set_trace_callback(before)
            work.using(connection=connection, after=[needed]).submit()
            connection.set_trace_callback(None)
            connection.commit()
        assert any("select" in statement for statement in inside)
        assert unlocked == []
