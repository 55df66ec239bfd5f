"""Queue capacity: exact with any number of submitters, and a refused submission writes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from tests.fixtures import Database

from holdfast import Holdfast, InvalidPolicy, QueueFull, Run
from holdfast.runs.limits import capacity
from holdfast.runs.outcomes import Release, RetryLater
from holdfast.store.transaction import Transaction
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual


@pytest.fixture
def job(hf: Holdfast) -> Any:
    hf.queue("runs", max_queued=3)
    hf.start()

    @hf.job(name="work", queue="runs", max_attempts=3)
    def work(x: int = 0) -> int:
        return x

    return work


def capacity_used(database: Database) -> int:
    return database.count("queue_capacity")


@pytest.mark.contract("Q8")
def test_a_full_queue_refuses_submissions_and_nothing_is_written(job: Any, database: Database) -> None:
    for number in range(3):
        job.submit(x=number)
    before = database.counts() | {"queue_capacity": capacity_used(database)}

    with pytest.raises(QueueFull) as refused:
        job.submit(x=3)

    assert refused.value.code == "queue_full"
    assert (refused.value.queue, refused.value.limit, refused.value.queued) == ("runs", 3, 3)
    assert refused.value.retry_after == timedelta(seconds=30)  # the default, because no run has ended yet
    assert database.counts() | {"queue_capacity": capacity_used(database)} == before


@pytest.mark.contract("Q8")
def test_a_process_that_declares_no_capacity_changes_none(job: Any, hf: Holdfast, url: str, clock: FakeClock) -> None:
    def start(**declared: int) -> None:
        with Holdfast(url, clock=clock) as other:
            other.queue("runs", **declared)
            other.start()

    hf.queues.limit("runs", max_queued=10)
    start(per_worker=2)
    assert [queue.max_queued for queue in hf.queues.list()] == [10]
    start(max_queued=3)  # the same declaration as before, so the limit set at run time stays
    assert [queue.max_queued for queue in hf.queues.list()] == [10]
    start(max_queued=4)
    assert [queue.max_queued for queue in hf.queues.list()] == [4]


@pytest.mark.contract("Q8")
def test_running_runs_use_capacity_and_ended_ones_do_not(job: Any, manual: Manual) -> None:
    for number in range(3):
        job.submit(x=number)
    worker = manual.worker(queues=["runs"])
    [claim] = worker.claim()
    with pytest.raises(QueueFull):
        job.submit(x=3)

    worker.finish(claim)

    assert job.submit(x=3).state == "queued"


@pytest.mark.contract("Q8")
@pytest.mark.parametrize("outcome", [Release("shutdown"), RetryLater("later", timedelta(seconds=5))])
def test_a_requeued_run_keeps_its_capacity(job: Any, manual: Manual, outcome: Any, database: Database) -> None:
    for number in range(3):
        job.submit(x=number)
    worker = manual.worker(queues=["runs"])
    worker.finish(worker.claim()[0], outcome)

    with pytest.raises(QueueFull):
        job.submit(x=3)
    assert capacity_used(database) == 3


@pytest.mark.contract("Q8")
def test_a_cancelled_run_frees_its_capacity(job: Any, hf: Holdfast, database: Database) -> None:
    runs = [job.submit(x=number) for number in range(3)]
    runs[1].cancel()
    job.submit(x=3)
    assert capacity_used(database) == 3
    assert hf.verify() == []


@pytest.mark.contract("Q8")
def test_a_taken_over_run_is_counted_once(job: Any, manual: Manual, clock: FakeClock, database: Database) -> None:
    job.submit()
    manual.worker(queues=["runs"]).claim()
    clock.advance(manual.hf.settings.lease * 2)
    manual.orchestrate()
    assert capacity_used(database) == 1


@pytest.mark.contract("Q8")
def test_submit_many_takes_capacity_for_all_runs_or_none(job: Any, database: Database) -> None:
    before = database.counts()
    with pytest.raises(QueueFull):
        job.submit_many([{"x": number} for number in range(4)])
    assert database.counts() == before
    assert capacity_used(database) == 0

    assert len(job.submit_many([{"x": number} for number in range(3)])) == 3


@pytest.mark.contract("Q8")
def test_a_refusal_in_a_callers_transaction_leaves_the_transaction_unchanged(
    job: Any, hf: Holdfast, database: Database
) -> None:
    hf.start()
    job.submit_many([{"x": 1}, {"x": 2}])
    before = database.counts()
    connection = database.connect()
    try:
        database.begin(connection)
        with pytest.raises(QueueFull):
            job.using(connection=connection).submit_many([{"x": 3}, {"x": 4}])
        connection.execute("commit")  # the caller can still commit its own changes
        assert database.counts() == before
        database.begin(connection)
        job.using(connection=connection).submit(x=3)
        connection.execute("commit")
    finally:
        connection.close()
    assert capacity_used(database) == 3


@pytest.mark.contract("Q8")
def test_a_rolled_back_submission_in_a_callers_transaction_uses_no_capacity(
    job: Any, hf: Holdfast, database: Database
) -> None:
    hf.start()
    connection = database.connect()
    try:
        database.begin(connection)
        job.using(connection=connection).submit_many([{}, {}, {}])
        connection.execute("rollback")
    finally:
        connection.close()
    assert capacity_used(database) == 0
    assert len(job.submit_many([{}, {}, {}])) == 3


@pytest.mark.contract("Q8")
def test_the_capacity_of_all_queues_counts_every_run_but_builds(url: str, clock: FakeClock, tmp_path: Path) -> None:
    with Holdfast(url, clock=clock, max_queued=2, artifacts=tmp_path) as hf:
        one = hf.job(name="one", queue="a")(lambda: None)
        two = hf.job(name="two", queue="b")(lambda: None)
        build = hf.build(name="make")(lambda fingerprint: None)
        build.submit(fingerprint="1")
        one.submit()
        two.submit()

        with pytest.raises(QueueFull, match="all queues together"):
            two.submit()

        build.submit(fingerprint="2")
        assert [(q.name, q.max_queued, q.queued) for q in hf.queues.list()] == [
            ("*", 2, 0),
            ("a", None, 1),
            ("b", None, 1),
            ("builds", None, 2),
        ]
        assert hf.verify() == []


@pytest.mark.contract("Q8")
def test_a_refused_submission_creates_neither_run_nor_build(hf: Holdfast, job: Any, database: Database) -> None:
    build = hf.build(name="make")(lambda fingerprint: None)
    job.submit_many([{}, {}, {}])
    before = database.counts() | {"builds": database.count("builds")}

    with pytest.raises(QueueFull):
        job.using(depends_on=[build.request(fingerprint="f")]).submit()

    assert database.counts() | {"builds": database.count("builds")} == before


@pytest.mark.contract("Q8")
def test_an_idempotent_repeat_uses_no_second_capacity(job: Any) -> None:
    first = job.using(idempotency_key="k").submit()
    job.submit_many([{}, {}])
    assert job.using(idempotency_key="k").submit().id == first.id


@pytest.mark.contract("Q8")
def test_again_uses_capacity_like_any_submission(job: Any, manual: Manual) -> None:
    first = job.submit()
    manual.run_all()
    job.submit_many([{}, {}, {}])
    with pytest.raises(QueueFull):
        first.again()


@pytest.mark.contract("Q8")
def test_a_capacity_set_on_a_filled_queue_counts_the_runs_in_it(
    hf: Holdfast, manual: Manual, database: Database
) -> None:
    job = hf.job(name="work", queue="q")(lambda: None)
    job.submit_many([{}, {}])
    job.using(delay=60).submit()
    manual.worker(queues=["q"]).claim()
    assert capacity_used(database) == 0

    hf.queues.limit("q", max_queued=3)
    assert capacity_used(database) == 3
    with pytest.raises(QueueFull):
        job.submit()

    hf.queues.limit("q", max_queued=4)
    job.submit()
    hf.queues.limit("q", max_queued=None)
    assert capacity_used(database) == 0
    job.submit_many([{}] * 5)
    assert hf.verify() == []


@pytest.mark.contract("Q8")
def test_existing_runs_are_counted_in_small_transactions(
    hf: Holdfast, manual: Manual, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs can continue while the existing runs are counted."""
    monkeypatch.setattr(capacity, "PAGE", 2)
    job = hf.job(name="work", queue="q")(lambda: None)
    job.submit_many([{}] * 5)
    job.using(delay=60).submit_many([{}] * 4)
    job.using(queue="other").submit_many([{}] * 3)
    manual.worker(queues=["q"]).claim(limit=2)
    before = hf.store.commits
    hf.queues.limit("q", max_queued=10)
    assert capacity_used(database) == 9
    assert hf.store.commits - before > 4
    assert hf.verify() == []


@pytest.mark.contract("Q8")
def test_every_process_obeys_the_capacity_of_a_queue_whatever_code_it_has(job: Any, url: str, clock: FakeClock) -> None:
    job.submit_many([{}, {}, {}])
    with Holdfast(url, clock=clock) as other:
        same = other.job(name="work", queue="runs")(lambda x=0: None)
        same.using(queue="free").submit()  # this process has not read the limit of queue `runs` yet
        with pytest.raises(QueueFull):
            same.submit()


@pytest.mark.contract("Q8")
@pytest.mark.parametrize("how", ["plain", "idempotency_key", "unique", "depends_on"])
def test_a_process_that_knows_no_capacity_runs_no_extra_query_and_obeys_it(
    hf: Holdfast, url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    other: Any = hf.job(name="other")(lambda number: None)
    options: dict[str, Any] = {
        "plain": {},
        "unique": {"unique": "queued"},
        "depends_on": {"depends_on": [other.submit(number=0)]},
    }
    asked: list[str] = []
    bounds = capacity.bounds

    def ask(tx: Transaction, wanted: Sequence[capacity.CapacityRequest]) -> dict[str, int]:
        asked.extend(request.queue for request in wanted)
        return bounds(tx, wanted)

    monkeypatch.setattr(capacity, "bounds", ask)

    def submit(number: int) -> None:
        other.using(queue="q", **options.get(how, {how: str(number)})).submit(number=number)

    submit(1)
    assert asked == []

    with Holdfast(url, clock=clock, ids=Ids(seed=2)) as other_hf:
        other_hf.queues.limit("q", max_queued=1)
    with pytest.raises(QueueFull):
        submit(2)


@pytest.mark.contract("Q8")
def test_retry_after_depends_on_how_fast_the_runs_of_the_queue_end(job: Any, manual: Manual, clock: FakeClock) -> None:
    worker = manual.worker(queues=["runs"])
    for number in range(10):
        job.submit(x=number)
        worker.finish(worker.claim()[0])
        clock.advance(4)
    job.submit_many([{}, {}, {}])

    with pytest.raises(QueueFull) as refused:
        job.submit()

    assert refused.value.retry_after == timedelta(seconds=4)


def submitters(url: str, count: int) -> Iterator[Callable[[], Run[Any] | None]]:
    """Each has its own Holdfast: simultaneous submissions of one Holdfast share a transaction and would not race."""
    for _ in range(count):
        hf = Holdfast(url)
        job = hf.job(name="work", queue="q")(lambda: None)
        hf.start()

        def submit(job: Any = job) -> Run[Any] | None:
            try:
                return cast("Run[Any]", job.submit())
            except QueueFull:
                return None

        yield submit


@pytest.mark.contract("Q8")
def test_threads_at_once_fill_a_queue_exactly(live: Holdfast, url: str, database: Database) -> None:
    live.queue("q", max_queued=25)
    live.start()
    asking = list(submitters(url, 8))
    with ThreadPoolExecutor(8) as pool:
        accepted = [run for run in pool.map(lambda number: asking[number % 8](), range(100)) if run]
    assert len(accepted) == 25
    assert (database.count("runs"), database.count("ready"), capacity_used(database)) == (25, 25, 25)

    barrier = threading.Barrier(8)

    def at_once(submit: Callable[[], Run[Any] | None]) -> Run[Any] | None:
        barrier.wait(60)
        return submit()

    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            live.cancel(accepted.pop())  # the queue has room for one run, and eight are submitted
            accepted += [run for run in pool.map(at_once, asking) if run]
            assert (len(accepted), capacity_used(database)) == (25, 25)


@pytest.mark.contract("Q8", "S3")
def test_submitters_and_a_worker_together_never_exceed_the_capacity(
    live: Holdfast, url: str, database: Database
) -> None:
    live.queue("q", max_queued=3)
    live.job(name="work", queue="q")(lambda: threading.Event().wait(0.005))  # slower than the submitters
    live.start()
    runs: list[Run[Any]] = []
    refused: list[None] = []
    most: list[int] = []

    def ask(submit: Callable[[], Run[Any] | None]) -> None:
        while len(runs) < 200:
            if (run := submit()) is not None:
                runs.append(run)
            else:
                refused.append(None)
            # Count unfinished runs in one statement, so that the count is of one moment.
            [[under_way]] = database.all(
                "select (select count(*) from holdfast_runs) - (select count(*) from holdfast_outcomes)"
            )
            most.append(under_way)

    with live.worker(queues=["q"], concurrency=1), ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(ask, submit) for submit in submitters(url, 6)]:
            future.result()
        for run in runs:
            run.result(timeout=60)

    assert refused, "the queue was never full"
    assert max(most) <= 3
    assert capacity_used(database) == 0
    assert live.verify() == []


def test_verify_finds_capacity_rows_without_a_run_and_runs_without_a_capacity_row(
    job: Any, hf: Holdfast, clock: FakeClock, database: Database
) -> None:
    hf.start()
    clock.advance(120)
    run = job.submit()
    database.run("update holdfast_queue_capacity set run_id = 'nobody'")
    assert [(found.problem, found.run_id) for found in hf.verify()] == [
        ("capacity_without_run", "nobody"),
        ("run_without_capacity", run.id),
    ]


def test_a_limit_changed_at_run_time_stays_until_the_code_declares_a_new_one(
    url: str, clock: FakeClock, hf: Holdfast, database: Database
) -> None:
    def start(limit: int) -> int | None:
        with Holdfast(url, clock=clock) as engine:
            engine.queue("q", max_queued=limit)
            engine.start()
            [queue] = engine.queues.list()
            return queue.max_queued

    assert start(5) == 5
    hf.queues.limit("q", max_queued=7)
    assert start(5) == 7
    versions = database.all("select version from holdfast_queues")
    assert start(5) == 7
    assert database.all("select version from holdfast_queues") == versions  # read, but not written
    assert start(6) == 6


def test_no_queue_may_have_the_name_that_means_all_queues(hf: Holdfast) -> None:
    with pytest.raises(InvalidPolicy, match="all queues"):
        hf.job(queue="*")(lambda: None)
