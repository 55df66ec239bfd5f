"""Idempotency keys: the same key returns the same run."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from holdfast import Holdfast, IdempotencyConflict
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("S3", "S4")
def test_the_same_idempotency_key_returns_the_same_run(hf: Holdfast, manual: Manual, database: Database) -> None:
    @hf.job(name="work")
    def work(number: int) -> int:
        return number

    first = work.using(idempotency_key="k").submit(1)
    assert work.using(idempotency_key="k").submit(1).id == first.id
    assert asyncio.run(work.using(idempotency_key="k").asubmit(1)).id == first.id
    assert database.count("runs") == database.count("ready") == 1

    manual.run_all()
    again = work.using(idempotency_key="k").submit(1)
    assert again.id == first.id
    assert again.result(timeout=1) == 1
    assert database.count("runs") == 1


@pytest.mark.contract("S4")
def test_the_same_idempotency_key_with_other_arguments_is_a_conflict(hf: Holdfast, database: Database) -> None:
    @hf.job(name="work")
    def work(number: int) -> None: ...

    first = work.using(idempotency_key="k").submit(1)
    before = database.counts()

    with pytest.raises(IdempotencyConflict, match=first.id) as caught:
        work.using(idempotency_key="k").submit(2)

    assert caught.value.code == "idempotency_conflict"
    assert database.counts() == before


@pytest.mark.contract("S4")
def test_an_idempotency_key_belongs_to_one_job(hf: Holdfast) -> None:
    @hf.job(name="one")
    def one(number: int) -> None: ...

    @hf.job(name="two")
    def two(number: int) -> None: ...

    assert one.using(idempotency_key="k").submit(1).id != two.using(idempotency_key="k").submit(2).id


@pytest.mark.contract("S3")
def test_again_does_not_copy_the_idempotency_key(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work(number: int) -> None: ...

    first = work.using(idempotency_key="k").submit(1)
    manual.run_all()

    assert first.again().id != first.id
    assert work.using(idempotency_key="k").submit(1).id == first.id


@pytest.mark.contract("S3")
@pytest.mark.parametrize("engines", [1, 2])
def test_concurrent_submissions_of_one_idempotency_key_create_one_run(
    url: str, database: Database, clock: FakeClock, engines: int
) -> None:
    """From threads of one process, which share commits, and from two engines, which do not."""
    threads = 16
    holdfasts = [Holdfast(url) for _ in range(engines)]
    jobs = []
    for hf in holdfasts:

        @hf.job(name="work")
        def work(number: int) -> None: ...

        hf.start()
        jobs.append(work)
    gate = threading.Barrier(threads)

    def submit(index: int) -> str:
        gate.wait()
        return jobs[index % engines].using(idempotency_key="k").submit(7).id

    with ThreadPoolExecutor(threads) as pool:
        ids = set(pool.map(submit, range(threads)))

    assert len(ids) == 1
    assert database.count("runs") == database.count("ready") == 1
    for hf in holdfasts:
        hf.close()


@pytest.mark.contract("S3")
def test_a_submission_whose_reply_was_lost_can_be_repeated(hf: Holdfast, database: Database) -> None:
    """After a broken connection the engine sends the same ids again, and each run is stored once."""
    from holdfast.runs.submit import submit_runs

    @hf.job(name="work", key="name")
    def work(name: str) -> None: ...

    hf.start()
    now = hf.clock.now()
    submissions = [work.submission(hf.ids.new(now), work.options, (), {"name": n}, now=now) for n in "ab"]

    first = hf.do(lambda tx: submit_runs(tx, submissions))
    second = hf.do(lambda tx: submit_runs(tx, submissions))

    assert first == second == [submission.run_id for submission in submissions]
    assert database.count("runs") == 2
    assert hf.verify() == []
