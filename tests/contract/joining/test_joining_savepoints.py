"""Joining inside a savepoint: the run is undone by each rollback that would undo a row written in its place.

sqlite3 begins no transaction before a SAVEPOINT, so one that comes first is a transaction by itself, and its RELEASE a
commit. SQLAlchemy promises that a rollback of the whole undoes it all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.orm import Session
from tests.contract.joining.callers import SQLITE_WAYS, WAYS, caller, count
from tests.databases import sqlite
from tests.listing import runs_of

from holdfast import Holdfast
from holdfast.jobs.job import Job

SQLALCHEMY_WAYS = [way for way in WAYS if " " in way]
ORDER = "insert into orders values (1)"


class Undo(Exception):
    pass


def counts(hf: Holdfast) -> tuple[int, int]:
    """How many orders and how many runs there are."""
    return count(hf, "orders"), count(hf, "holdfast_runs")


@pytest.mark.contract("S2")
@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("way", SQLALCHEMY_WAYS)
def test_a_submission_first_in_a_savepoint_that_is_released_ends_with_the_transaction(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, how: str
) -> None:
    async def scene() -> None:
        async with caller(way, url) as tx:
            async with tx.savepoint():
                await tx.submit(job, "a")
            await tx.execute(ORDER)
            await getattr(tx, how)()

    asyncio.run(scene())
    assert counts(hf) == ((1, 1) if how == "commit" else (0, 0))


@pytest.mark.contract("S2")
@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("way", SQLALCHEMY_WAYS)
def test_savepoints_in_savepoints_end_with_the_transaction(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, how: str
) -> None:
    async def scene() -> None:
        async with caller(way, url) as tx:
            async with tx.savepoint():
                await tx.execute(ORDER)
                async with tx.savepoint():
                    await tx.submit(job, "a")
                async with tx.savepoint():
                    await tx.submit(job, "b")
            async with tx.savepoint():
                await tx.execute(ORDER)
            await getattr(tx, how)()

    asyncio.run(scene())
    assert counts(hf) == ((2, 2) if how == "commit" else (0, 0))


@pytest.mark.contract("S2")
@pytest.mark.parametrize("way", SQLALCHEMY_WAYS)
def test_a_savepoint_that_is_undone_takes_its_run_with_it_and_nothing_else(
    hf: Holdfast, url: str, job: Job[[str], str], way: str
) -> None:
    async def scene() -> None:
        async with caller(way, url) as tx:
            async with tx.savepoint():
                await tx.submit(job, "a")
                await tx.execute(ORDER)
            with contextlib.suppress(Undo):
                async with tx.savepoint():
                    await tx.execute(ORDER)
                    await tx.submit(job, "b")
                    raise Undo
            await tx.commit()

    asyncio.run(scene())
    assert counts(hf) == (1, 1)
    assert [run.args for run in runs_of(hf)] == [{"name": "a"}]


@pytest.mark.contract("S2")
@pytest.mark.parametrize("end", ["commit", "rollback", "release", "undo"])
@pytest.mark.parametrize("way", ["sqlite3", "psycopg"])
def test_a_savepoint_of_the_driver_has_the_order_and_the_run_or_neither(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, end: str
) -> None:
    """On SQLite the release of the outermost savepoint is the commit, of rows and runs alike."""

    async def scene() -> None:
        async with caller(way, url) as tx:
            await tx.execute("savepoint a")
            await tx.submit(job, "a")
            await tx.execute(ORDER)
            if end == "undo":
                await tx.execute("rollback to a")
            if end in ("undo", "release"):
                await tx.execute("release a")
            if end != "rollback":
                await tx.commit()

    asyncio.run(scene())
    assert counts(hf) == ((1, 1) if end in ("commit", "release") else (0, 0))


@pytest.mark.contract("S2")
@pytest.mark.parametrize("way", [way for way in SQLITE_WAYS if " " in way])
def test_where_each_statement_commits_by_itself_a_savepoint_is_the_transaction(
    hf: Holdfast, url: str, job: Job[[str], str], way: str
) -> None:
    async def scene() -> None:
        async with caller(way, url, "AUTOCOMMIT") as tx:
            async with tx.savepoint():
                await tx.submit(job, "a")
                await tx.execute(ORDER)
            with contextlib.suppress(Undo):
                async with tx.savepoint():
                    await tx.submit(job, "b")
                    await tx.execute(ORDER)
                    raise Undo

    asyncio.run(scene())
    assert counts(hf) == (1, 1)


@pytest.mark.contract("S2")
@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("way", ["sqlite3"])
def test_an_engine_that_begins_before_a_savepoint_is_joined_as_well(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, how: str
) -> None:
    """With the listeners that SQLAlchemy's documentation recommends for SQLite."""
    engine = sqlalchemy.create_engine(url, module=sqlite)

    @sqlalchemy.event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @sqlalchemy.event.listens_for(engine, "begin")
    def begun(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    with Session(engine) as session:
        with session.begin_nested():
            job.using(connection=session).submit("a")
        session.execute(sqlalchemy.text(ORDER))
        getattr(session, how)()
    engine.dispose()

    assert counts(hf) == ((1, 1) if how == "commit" else (0, 0))
