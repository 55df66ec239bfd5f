"""Submissions in a savepoint: a rollback removes the run if and only if it removes the caller's row.

sqlite3 begins no transaction before a SAVEPOINT, so an outermost SAVEPOINT is a transaction, and its RELEASE is a
commit. With SQLAlchemy, a rollback of the session must still undo the changes in a released savepoint.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.orm import Session
from tests.contract.caller_transaction.callers import SQLITE_WAYS, WAYS, caller, count
from tests.databases import sqlite
from tests.listing import runs_of

from holdfast import Holdfast
from holdfast.jobs.job import Job

SQLALCHEMY_WAYS = [way for way in WAYS if " " in way]
ORDER = "insert into orders values (1)"


class Undo(Exception):
    pass


def counts(hf: Holdfast) -> tuple[int, int]:
    """The number of orders and the number of runs."""
    return count(hf, "orders"), count(hf, "holdfast_runs")


@pytest.mark.contract("S2")
@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("way", SQLALCHEMY_WAYS)
def test_a_submission_in_a_released_savepoint_commits_or_rolls_back_with_the_transaction(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, how: str
) -> None:
    async def scenario() -> None:
        async with caller(way, url) as tx:
            async with tx.savepoint():
                await tx.submit(job, "a")
            await tx.execute(ORDER)
            await getattr(tx, how)()

    asyncio.run(scenario())
    assert counts(hf) == ((1, 1) if how == "commit" else (0, 0))


@pytest.mark.contract("S2")
@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("way", SQLALCHEMY_WAYS)
def test_submissions_in_nested_savepoints_commit_or_roll_back_with_the_transaction(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, how: str
) -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())
    assert counts(hf) == ((2, 2) if how == "commit" else (0, 0))


@pytest.mark.contract("S2")
@pytest.mark.parametrize("way", SQLALCHEMY_WAYS)
def test_rolling_back_a_savepoint_removes_its_run_and_nothing_else(
    hf: Holdfast, url: str, job: Job[[str], str], way: str
) -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())
    assert counts(hf) == (1, 1)
    assert [run.args for run in runs_of(hf)] == [{"name": "a"}]


@pytest.mark.contract("S2")
@pytest.mark.parametrize("end", ["commit", "rollback", "release", "undo"])
@pytest.mark.parametrize("way", ["sqlite3", "psycopg"])
def test_a_savepoint_of_the_driver_keeps_both_the_order_and_the_run_or_neither(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, end: str
) -> None:
    """On SQLite the release of the outermost savepoint commits both the rows and the runs."""

    async def scenario() -> None:
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

    asyncio.run(scenario())
    assert counts(hf) == ((1, 1) if end in ("commit", "release") else (0, 0))


@pytest.mark.contract("S2")
@pytest.mark.parametrize("way", [way for way in SQLITE_WAYS if " " in way])
def test_in_autocommit_mode_a_savepoint_is_the_transaction(
    hf: Holdfast, url: str, job: Job[[str], str], way: str
) -> None:
    async def scenario() -> None:
        async with caller(way, url, "AUTOCOMMIT") as tx:
            async with tx.savepoint():
                await tx.submit(job, "a")
                await tx.execute(ORDER)
            with contextlib.suppress(Undo):
                async with tx.savepoint():
                    await tx.submit(job, "b")
                    await tx.execute(ORDER)
                    raise Undo

    asyncio.run(scenario())
    assert counts(hf) == (1, 1)


@pytest.mark.contract("S2")
@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("way", ["sqlite3"])
def test_a_sqlalchemy_engine_that_begins_before_a_savepoint_works_too(
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
