"""Waiting for results: no thread per waiter, few statements, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine
from tests.fixtures import Database
from tests.waiting import wait_for

from holdfast import Holdfast, ResultTimeout, RunFailed, RunNotFound
from holdfast.runs.handle import Run
from holdfast.store.transaction import Transaction
from holdfast.testing import Manual

MANY = 200


@pytest.fixture
def job(hf: Holdfast) -> Any:
    return hf.job(name="work")(lambda number: number)


def submitted(job: Any, count: int) -> list[Run[int]]:
    return list(job.submit_many([{"number": number} for number in range(count)]))


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Records every statement from now on, with its ids."""
    statements: list[tuple[str, Any]] = []
    execute = Transaction._execute

    def noted(tx: Transaction, name: str, values: Any) -> Any:
        statements.append((name, values.get("ids")))
        return execute(tx, name, values)

    monkeypatch.setattr(Transaction, "_execute", noted)
    return statements


def queried(statements: list[tuple[str, Any]], runs: list[Run[int]], *, times: int) -> Callable[[], bool]:
    """A condition: the shared query has covered each of these runs at least this many times."""

    def check() -> bool:
        queries = Counter(run_id for name, ids in list(statements) if name == "find_open" for run_id in ids)
        return all(queries[run.id] >= times for run in runs)

    return check


async def until(condition: Callable[[], Any]) -> None:
    give_up_at = asyncio.get_running_loop().time() + 60
    while not condition():
        assert asyncio.get_running_loop().time() < give_up_at
        await asyncio.sleep(0.01)


async def ended(tasks: list[asyncio.Task[int]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.contract("S3")
def test_many_result_waiters_occupy_no_application_threads(
    hf: Holdfast, job: Any, statements: list[tuple[str, Any]]
) -> None:
    runs = submitted(job, MANY)

    async def scenario() -> None:
        before = threading.active_count()
        waiting = [asyncio.create_task(run.aresult()) for run in runs]
        await until(queried(statements, runs, times=1))
        assert threading.active_count() <= before + 2, (
            "the only new threads are the waiter and the one that closes idle connections"
        )
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "at once"), 60) == "at once"
        assert not any(task.done() for task in waiting)
        await ended(waiting)

    asyncio.run(scenario())


@pytest.mark.contract("S3")
def test_cancelled_result_waits_leave_nothing_behind(hf: Holdfast, job: Any, database: Database) -> None:
    [run] = submitted(job, 1)

    async def scenario() -> str:
        for _ in range(40):  # more than asyncio's default executor has threads
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(run.aresult(), 0.01)
        assert hf.waiter._watches == {}
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 60) == "free"
        if database.kind == "mssql":
            return "no async driver here"
        url = database.url.replace("sqlite:", "sqlite+aiosqlite:").replace("postgresql:", "postgresql+psycopg:")
        engine = create_async_engine(url)
        try:
            async with engine.begin() as connection:
                joined = await asyncio.wait_for(job.using(connection=connection).asubmit(number=1), 60)
            return str(hf.snapshot(joined.id).state)
        finally:
            await engine.dispose()

    assert asyncio.run(scenario()) in ("queued", "no async driver here")


@pytest.mark.contract("S3")
def test_many_async_waiters_share_their_statements(
    hf: Holdfast, manual: Manual, job: Any, statements: list[tuple[str, Any]]
) -> None:
    runs = submitted(job, MANY)

    async def scenario() -> list[int]:
        statements.clear()
        waiting = [asyncio.create_task(run.aresult(timeout=600)) for run in runs]
        await until(queried(statements, runs, times=10))
        assert {name for name, _ in statements} == {"find_open"}
        assert len(statements) <= 40, "each query must cover all runs"
        await asyncio.to_thread(manual.run_all)
        return await asyncio.wait_for(asyncio.gather(*waiting), 60)

    assert asyncio.run(scenario()) == list(range(MANY))


@pytest.mark.contract("S3")
def test_many_sync_waiters_share_their_queries(
    hf: Holdfast, manual: Manual, job: Any, statements: list[tuple[str, Any]]
) -> None:
    runs = submitted(job, 50)
    results: dict[str, int] = {}
    statements.clear()
    threads = [
        threading.Thread(target=lambda run=run: results.update({run.id: run.result(timeout=600)}), daemon=True)
        for run in runs
    ]
    for thread in threads:
        thread.start()
    wait_for(queried(statements, runs, times=10), what="ten queries at each run")
    own = [name for name, _ in list(statements) if name != "find_open"]
    assert len(own) <= 2 * len(runs), "a caller queries twice by itself, then the waiter queries for all"
    manual.run_all()
    for thread in threads:
        thread.join(60)
    assert [results[run.id] for run in runs] == list(range(50))


@pytest.mark.contract("S3")
def test_an_outcome_written_by_another_process_is_found(hf: Holdfast, job: Any, url: str) -> None:
    runs = submitted(job, 3)
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.append(runs[0].result(timeout=600)), daemon=True)
    waiting.start()

    async def scenario() -> list[int]:
        awaited = [asyncio.create_task(run.aresult(timeout=600)) for run in runs]
        await until(lambda: len(hf.waiter._watches) == 3)
        with Holdfast(url, clock=hf.clock) as other:  # its commits send no notification to `hf`
            other.job(name="work")(lambda number: number)
            await asyncio.to_thread(Manual(other).run_all)
        return await asyncio.wait_for(asyncio.gather(*awaited), 60)

    assert asyncio.run(scenario()) == [0, 1, 2]
    waiting.join(60)
    assert found == [0]


@pytest.mark.contract("S3")
def test_aresult_behaves_like_result(hf: Holdfast, manual: Manual, job: Any, database: Database) -> None:
    fails = hf.job(name="fails")(lambda: 1 // 0)
    [queued, done], failed = submitted(job, 2), fails.submit()
    hf.cancel(queued)
    manual.run_all()
    [late] = submitted(job, 1)
    for timeout in (0, -1, 0.01):
        with pytest.raises(ResultTimeout) as late_error:
            asyncio.run(late.aresult(timeout))
        assert f"run {late.id} is still queued after" in str(late_error.value)
    with pytest.raises(ResultTimeout, match=r"is still queued after 0:00:00$"):
        late.result(0)
    assert asyncio.run(done.aresult(0)) == done.result(0) == 1
    for run in (failed, queued):
        with pytest.raises(RunFailed) as sync:
            run.result()
        with pytest.raises(RunFailed) as awaited:
            asyncio.run(run.aresult())
        assert str(sync.value) == str(awaited.value)
    with contextlib.closing(database.connect()) as connection:
        database.begin(connection)
        undone = job.using(connection=connection).submit(number=7)
        connection.execute("rollback")
    with pytest.raises(RunNotFound, match="its transaction is not committed, or was rolled back"):
        asyncio.run(undone.aresult())
