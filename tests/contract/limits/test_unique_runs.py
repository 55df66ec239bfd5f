"""Unique runs: a submission returns the run that already exists."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from tests.fixtures import Database

from holdfast import Holdfast, InvalidPolicy, QueueFull
from holdfast.runs.limits.unique import UniqueClaim, take_unique
from holdfast.runs.outcomes import RetryLater
from holdfast.support import json_text
from holdfast.testing import FakeClock, Manual


@pytest.fixture
def job(hf: Holdfast) -> Any:
    return hf.job(name="refresh", unique="queued", max_attempts=9)(lambda what: None)


@pytest.mark.contract("S4")
def test_a_ready_run_is_returned_instead_of_a_new_one(job: Any, database: Database) -> None:
    first = job.submit(what="a")
    assert job.submit(what="a").id == first.id
    assert job.submit(what="b").id != first.id
    assert database.count("runs") == 2


def test_a_waiting_run_is_returned_instead_of_a_new_one(job: Any, manual: Manual) -> None:
    first = job.using(delay=60).submit(what="a")
    assert job.submit(what="a").id == first.id
    retried = job.submit(what="b")
    worker = manual.worker("a")
    worker.finish(worker.claim()[0], RetryLater("again", timedelta(seconds=30)))
    assert job.submit(what="b").id == retried.id


def test_a_running_run_counts_only_for_unique_active(job: Any, hf: Holdfast, manual: Manual) -> None:
    first = job.submit(what="a")
    [claim] = manual.worker("a").claim()
    assert job.using(unique="active").submit(what="a").id == first.id

    second = job.submit(what="a")
    assert second.id != first.id
    assert job.submit(what="a").id == second.id

    manual.worker("a").finish(claim)
    assert job.using(unique="active").submit(what="a").id == second.id


@pytest.mark.parametrize("unique", ["queued", "active"])
def test_an_ended_run_does_not_count(job: Any, manual: Manual, unique: str) -> None:
    first = job.submit(what="a")
    manual.run_all()
    assert job.using(unique=unique).submit(what="a").id != first.id


def test_jobs_with_a_key_are_unique_by_the_key(hf: Holdfast) -> None:
    job = hf.job(name="by_key", key="document", unique="queued")(lambda document, page: None)
    other = hf.job(name="other", key="document", unique="queued")(lambda document, page: None)
    first = job.submit(document="a", page=1)
    assert job.submit(document="a", page=2).id == first.id
    assert other.submit(document="a", page=1).id != first.id


def test_submit_many_returns_the_same_run_for_the_same_arguments(job: Any, database: Database) -> None:
    ids = [run.id for run in job.submit_many([{"what": "a"}, {"what": "b"}, {"what": "a"}])]
    assert ids[0] == ids[2] != ids[1]
    assert database.count("runs") == 2


def test_a_full_queue_returns_existing_unique_runs_and_refuses_new_ones(hf: Holdfast, job: Any) -> None:
    hf.queue("default", max_queued=1)
    first = job.submit(what="a")
    assert job.submit(what="a").id == first.id
    assert [run.id for run in job.submit_many([{"what": "a"}, {"what": "a"}])] == [first.id] * 2
    with pytest.raises(QueueFull):
        job.submit(what="b")


def test_a_unique_submission_in_a_callers_transaction_commits_or_rolls_back_with_it(
    job: Any, hf: Holdfast, database: Database
) -> None:
    hf.start()
    connection = database.connect()
    try:
        database.begin(connection)
        job.using(connection=connection).submit(what="a")
        connection.execute("rollback")
        assert (database.count("runs"), database.count("unique_runs")) == (0, 0)
        database.begin(connection)
        mine = job.using(connection=connection).submit(what="a")
        connection.execute("commit")
        database.begin(connection)
        assert job.using(connection=connection).submit(what="a").id == mine.id
        connection.execute("commit")
    finally:
        connection.close()


def test_a_race_to_replace_an_ended_unique_run_has_one_winner(job: Any, hf: Holdfast, manual: Manual) -> None:
    """If the row has changed since it was read, it is not replaced, and the row is read again."""
    job.submit(what="a")
    manual.run_all()
    digest = json_text.digest("args", '{"what":"a"}', size=16)
    mine = UniqueClaim("mine", "refresh", digest, running=False)

    def lose(tx: Any) -> dict[str, str]:
        stale = tx.all("find_unique_runs", rows=[{"job": "refresh", "digest": digest, "run_id": "mine"}])
        assert [row["state"] for row in stale] == [None]
        swap = {"job": "refresh", "digest": digest, "run_id": "mine", "old_id": "someone else"}
        assert tx.all("replace_unique_runs", rows=[swap]) == []
        return take_unique(tx, [mine])

    assert hf.do(lose) == {}  # it reads the row again and replaces it
    assert hf.do(lambda tx: take_unique(tx, [mine])) == {}  # the same run again, as after a lost reply


def test_many_threads_at_once_create_one_unique_run(live: Holdfast, database: Database) -> None:
    job = live.job(name="refresh", unique="queued")(lambda what: None)
    live.start()
    with ThreadPoolExecutor(16) as pool:
        ids = set(pool.map(lambda number: job.submit(what=str(number % 3)).id, range(150)))
    assert len(ids) == 3
    assert database.count("runs") == 3


def test_many_threads_replace_an_ended_unique_run_with_one(live: Holdfast, database: Database) -> None:
    job = live.job(name="refresh", unique="active")(lambda what: None)
    job.submit(what="a")
    Manual(live).run_all()
    engines = [Holdfast(live.settings.url, poll_interval=0.05, lease=3) for _ in range(4)]
    try:
        jobs = [engine.job(name="refresh", unique="active")(lambda what: None) for engine in engines]
        with ThreadPoolExecutor(8) as pool:
            ids = set(pool.map(lambda number: jobs[number % 4].submit(what="a").id, range(40)))
    finally:
        for engine in engines:
            engine.close()
    assert len(ids) == 1
    assert database.count("runs") == 2


@pytest.mark.contract("S4")
def test_unique_accepts_only_its_two_values(hf: Holdfast) -> None:
    with pytest.raises(InvalidPolicy, match="unique"):
        hf.job(unique="always")(lambda: None)  # type: ignore[arg-type]


def test_a_submission_repeated_after_a_lost_reply_returns_the_same_run(
    hf: Holdfast, job: Any, clock: FakeClock
) -> None:
    from holdfast.runs.submit import submit_runs

    hf.start()
    submission = job.submission(hf.ids.new(clock.now()), job.options, (), {"what": "a"}, now=clock.now())
    [first] = hf.do(lambda tx: submit_runs(tx, [submission]))
    [again] = hf.do(lambda tx: submit_runs(tx, [submission]))
    assert first == again == submission.run_id


@pytest.mark.contract("S4")
def test_an_idempotent_repeat_does_not_become_the_unique_run(hf: Holdfast, manual: Manual, database: Database) -> None:
    job = hf.job(name="once", unique="queued")(lambda page: None)
    first = job.using(idempotency_key="event 1").submit(page="a")
    manual.run_all()
    assert job.using(idempotency_key="event 1").submit(page="a").id == first.id
    assert database.all("select run_id from holdfast_unique_runs") == [(first.id,)]
    second = job.using(idempotency_key="event 2").submit(page="a")
    assert job.using(idempotency_key="event 1").submit(page="a").id == first.id
    assert job.submit(page="a").id == second.id
