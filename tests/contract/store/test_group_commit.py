"""Group commit: concurrent submissions of one process share a commit, and nothing else."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from tests.listing import runs_of

from holdfast import (
    Holdfast,
    HoldfastError,
    IdempotencyConflict,
    UnknownDependency,
)
from holdfast.store.transaction import Transaction

if TYPE_CHECKING:
    from tests.fixtures import Database


def count_commits(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record each commit from now on, and delay it a little, as a disk does."""
    commits: list[int] = []
    commit = hf.store.dialect.commit

    def counted(connection: Any) -> None:
        threading.Event().wait(0.01)
        commit(connection)
        commits.append(1)

    monkeypatch.setattr(hf.store.dialect, "commit", counted)
    return commits


@pytest.mark.contract("S3")
def test_submissions_of_many_threads_share_commits(
    hf: Holdfast, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    @hf.job(name="work", key="name")
    def work(name: str) -> None: ...

    hf.start()
    commits = count_commits(hf, monkeypatch)
    gather = hf._submitter._together
    with ThreadPoolExecutor(20) as pool:
        with gather._lock:  # as if another thread were committing
            submitted = [pool.submit(work.submit, str(index)) for index in range(20)]
            over_at = time.monotonic() + 30
            while len(gather._waiting) < 20:
                assert time.monotonic() < over_at
                time.sleep(0.01)
        ids = [one.result(30).id for one in submitted]

    assert len(set(ids)) == 20 == database.count("runs") == database.count("ready")
    assert len(commits) == 1
    assert hf.verify() == []


@pytest.mark.contract("S3")
def test_submissions_of_many_tasks_share_commits(
    hf: Holdfast, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    @hf.job(name="work")
    def work(number: int) -> None: ...

    commits = count_commits(hf, monkeypatch)

    async def scenario() -> None:
        await asyncio.gather(*(work.asubmit(n) for n in range(100)))

    asyncio.run(scenario())

    assert database.count("runs") == 100
    assert len(commits) < 50


@pytest.mark.contract("S4")
def test_an_error_of_one_submission_never_fails_the_others(hf: Holdfast, database: Database) -> None:
    @hf.job(name="work")
    def work(number: int) -> None: ...

    work.using(idempotency_key="taken").submit(0)

    async def scenario() -> list[Any]:
        bad = [
            work.using(idempotency_key="taken").asubmit(1),
            work.using(depends_on=["nothing"]).asubmit(2),
        ]
        good = [work.asubmit(number) for number in range(30)]
        return await asyncio.gather(*good[:15], *bad, *good[15:], return_exceptions=True)

    answers = asyncio.run(scenario())

    failed = [answer for answer in answers if isinstance(answer, Exception)]
    assert [type(error) for error in failed] == [IdempotencyConflict, UnknownDependency]
    assert all(isinstance(error, HoldfastError) for error in failed)
    assert database.count("runs") == 31
    assert hf.verify() == []


@pytest.mark.contract("S4")
def test_a_submission_that_the_database_refuses_fails_alone(
    hf: Holdfast, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that the database refuses is halved until the refused submission is found."""
    from holdfast.runs import submit
    from holdfast.runs.submission import Submission, stored

    @hf.job(name="work")
    def work(number: int) -> None: ...

    hf.start()
    real = stored

    def broken(submission: Submission, now: Any) -> Any:
        row = real(submission, now)
        return row | {"queue": None} if submission.args == '{"number":13}' else row

    monkeypatch.setattr(submit, "stored", broken)

    async def scenario() -> list[Any]:
        return await asyncio.gather(*(work.asubmit(n) for n in range(40)), return_exceptions=True)

    answers = asyncio.run(scenario())

    assert [n for n, answer in enumerate(answers) if isinstance(answer, Exception)] == [13]
    assert database.count("runs") == 39
    assert hf.verify() == []


@pytest.mark.contract("S3")
def test_an_error_in_one_transaction_does_not_affect_later_ones(postgres_url: str) -> None:
    """After an error, PostgreSQL skips the statements sent after the failed one; they must not count as prepared."""
    with Holdfast(postgres_url) as hf:
        hf.start()

        def refused(tx: Transaction) -> None:
            tx.put("insert_ready", rows=[{}])  # its columns must not be null
            tx.put("ensure_queue", name="q")
            tx.put("resume_queue", name="q")

        for _ in range(12):  # a statement is prepared at its sixth execution
            with pytest.raises(psycopg.errors.NotNullViolation):
                hf.do(refused)
            hf.do(lambda tx: tx.put("ensure_queue", name="q"))
            hf.queues.resume("q")


@pytest.mark.contract("S3")
def test_a_cancelled_async_submission_does_not_disturb_the_others(hf: Holdfast, database: Database) -> None:
    @hf.job(name="work")
    def work(number: int) -> None: ...

    async def scenario() -> None:
        hf.start()
        tasks = [asyncio.create_task(work.asubmit(n)) for n in range(20)]
        await asyncio.sleep(0)
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(task.cancelled() for task in tasks) == 1

    asyncio.run(scenario())
    assert database.count("runs") in (19, 20)
    assert hf.verify() == []


@pytest.mark.contract("S3")
def test_a_submission_blocked_by_an_open_transaction_blocks_no_other(postgres_url: str) -> None:
    with Holdfast(postgres_url, busy_timeout=20) as hf, psycopg.connect(postgres_url) as caller:

        @hf.job(name="work")
        def work(n: int) -> None: ...

        hf.start()
        work.using(connection=caller, idempotency_key="X").submit(n=1)
        blocked: list[str] = []
        waiting = threading.Thread(target=lambda: blocked.append(work.using(idempotency_key="X").submit(n=1).id))
        waiting.start()
        for number in range(20):
            work.submit(n=number)
        assert not blocked  # it still waits, and the others have not waited for it
        caller.commit()
        waiting.join(60)
        assert len(blocked) == 1
        assert len(runs_of(hf)) == 21
