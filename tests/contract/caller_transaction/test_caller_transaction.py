"""Submitting in a caller's transaction: the run exists if and only if the transaction commits."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from tests.contract.caller_transaction.callers import PYSQLITE3_WAYS, WAYS, Caller, caller, count
from tests.databases import sqlite

from holdfast import Holdfast, IdempotencyConflict, Run, StoreBusy, UnknownDependency, WrongSqliteLibrary
from holdfast.jobs.job import Job
from holdfast.testing import Manual

ORDER = "insert into orders values (1)"
BEGUN_BY_HAND = {"sqlite3 begin immediate": "begin immediate", "psycopg begin": "begin"}


@contextlib.asynccontextmanager
async def begun(way: str, url: str) -> AsyncIterator[Caller]:
    """A caller; for the ways in BEGUN_BY_HAND, one that has begun its transaction with a statement."""
    if way not in BEGUN_BY_HAND:
        async with caller(way, url) as tx:
            yield tx
        return
    async with caller(way.partition(" ")[0], url, "AUTOCOMMIT") as tx:
        await tx.execute(BEGUN_BY_HAND[way])
        yield tx


@pytest.mark.contract("S2", "P4")
@pytest.mark.parametrize("way", [*WAYS, *PYSQLITE3_WAYS, *BEGUN_BY_HAND])
@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_the_run_and_the_callers_row_are_committed_or_rolled_back_together(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, how: str
) -> None:
    async def scenario() -> list[Run[str]]:
        async with begun(way, url) as tx:
            await tx.execute(ORDER)
            runs = [await tx.submit(job, "a", idempotency_key="k")]
            assert (await tx.submit(job, "a", idempotency_key="k")).id == runs[0].id
            runs += await tx.submit_many(job, [{"name": "b"}, {"name": "a"}])
            seen = await asyncio.to_thread(count, hf, "holdfast_runs")
            assert seen == 0, "others must not see the runs before the caller commits"
            await getattr(tx, how)()
        return runs

    runs = asyncio.run(scenario())
    expected = 1 if how == "commit" else 0
    assert count(hf, "orders") == expected
    assert count(hf, "holdfast_runs") == 3 * expected
    assert hf.verify() == []
    if expected:
        Manual(hf).run_all()
        assert [run.result(timeout=1) for run in runs] == ["a", "b", "a"]


@pytest.mark.contract("S2", "S4")
@pytest.mark.parametrize("way", [*WAYS, *PYSQLITE3_WAYS, *BEGUN_BY_HAND])
def test_a_refused_submission_leaves_the_callers_transaction_usable(
    hf: Holdfast, url: str, job: Job[[str], str], way: str
) -> None:
    job.using(idempotency_key="k").submit("a")

    async def scenario() -> None:
        async with begun(way, url) as tx:
            await tx.execute(ORDER)
            with pytest.raises(IdempotencyConflict):
                await tx.submit(job, "other", idempotency_key="k")
            with pytest.raises(UnknownDependency):
                await tx.submit(job, "b", depends_on=["nothing"])
            await tx.commit()

    asyncio.run(scenario())
    assert count(hf, "orders") == 1
    assert count(hf, "holdfast_runs") == 1
    assert hf.verify() == []


@pytest.mark.contract("S2", "P3")
@pytest.mark.parametrize("way", ["sqlite3 begin immediate", "psycopg"])
def test_a_submission_in_a_callers_transaction_locks_no_key(
    hf: Holdfast, url: str, job: Job[[str], str], way: str
) -> None:
    keyed = job.using(key="name")

    async def scenario() -> Run[str]:
        async with begun(way, url) as tx:
            run: Run[str] = await tx.submit(job, "a", key="name")
            if way == "psycopg":
                other = keyed.submit("a")  # returns at once although the caller's transaction is open
                assert other.snapshot.place == "ready"
            await tx.commit()
            return run

    run = asyncio.run(scenario())
    assert count(hf, "holdfast_key_locks") == (1 if way == "psycopg" else 0)
    assert run.refresh().snapshot.place == "waits"
    Manual(hf).run_all()
    assert run.result(timeout=1) == "a"


@pytest.mark.contract("S4")
def test_a_connection_of_another_sqlite_library_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    with Holdfast(sqlite_url, sqlite_module="pysqlite3") as hf:

        @hf.job(name="work")
        def work() -> None: ...

        hf.start()
        # Another file, because one process must never open the store's file with two SQLite libraries.
        with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection:
            with pytest.raises(WrongSqliteLibrary, match="module=") as caught:
                work.using(connection=connection).submit()
        engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'other.db'}")
        with engine.connect() as other, pytest.raises(WrongSqliteLibrary):
            work.using(connection=other).submit()
        engine.dispose()

        async def scenario() -> None:
            aengine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'other.db'}")
            async with AsyncSession(aengine) as session:
                with pytest.raises(WrongSqliteLibrary):
                    await work.using(connection=session).asubmit()
            await aengine.dispose()

        asyncio.run(scenario())
        assert caught.value.code == "wrong_sqlite_library"
        assert count(hf, "holdfast_runs") == 0


@pytest.mark.contract("P4", "S4")
def test_a_deferred_transaction_that_cannot_take_the_lock_raises_store_busy_and_writes_nothing(
    sqlite_url: str,
) -> None:
    """Another connection has written since this transaction read, so SQLite never lets this transaction write."""
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
def test_a_lock_held_by_another_connection_raises_store_busy_and_nothing_is_written(sqlite_url: str) -> None:
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
    """Two writers never act on the same state, because the second one must wait before its first read."""
    with Holdfast(sqlite_url, busy_timeout=0.05) as hf:
        with hf.store.transaction(), contextlib.closing(sqlite.connect(sqlite_url[10:], timeout=0)) as other:
            with pytest.raises(sqlite.OperationalError, match="locked"):
                other.execute("begin immediate")


@pytest.mark.contract("P4")
def test_a_submission_that_begins_the_callers_transaction_takes_the_lock_before_it_reads(sqlite_url: str) -> None:
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
            work.using(connection=connection, depends_on=[needed]).submit()
            connection.set_trace_callback(None)
            connection.commit()
        assert any("select" in statement for statement in inside)
        assert unlocked == []
