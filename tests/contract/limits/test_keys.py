"""Keys: at most one run of a key at a time, the oldest due one first."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.waiting import hold_past_the_deadline

from holdfast import Holdfast, Retry
from holdfast.runs.outcomes import Failed, Succeeded
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.fixture
def process(hf: Holdfast) -> Any:
    @hf.job(name="process", key="document")
    def process(document: str, number: int = 0) -> str:
        return document

    return process


@pytest.mark.contract("P2", "P3", "P9")
def test_runs_of_one_key_start_one_after_the_other_oldest_first(hf: Holdfast, manual: Manual, process: Any) -> None:
    runs = [process.submit("a", number) for number in range(4)]
    worker = manual.worker()

    for run in runs:
        [claim] = worker.claim(limit=10)
        assert claim.lease.run_id == run.id
        manual.orchestrate()
        assert worker.claim(limit=10) == [], "a second run of the key must not start while one runs"
        assert [one.refresh().state for one in runs].count("running") == 1
        worker.finish(claim)
        manual.orchestrate()

    assert [run.refresh().state for run in runs] == ["succeeded"] * 4
    assert hf.verify() == []


@pytest.mark.contract("P3")
def test_a_submission_while_a_run_of_its_key_runs_is_accepted_and_queued(
    hf: Holdfast, manual: Manual, database: Database, process: Any
) -> None:
    first = process.submit("a")
    [claim] = manual.worker().claim()
    before = database.all("select id, created_at from holdfast_runs order by id")

    later = [process.submit("a") for _ in range(3)]

    assert [run.state for run in later] == ["queued"] * 3
    assert first.refresh().state == "running"
    assert database.all("select id, created_at from holdfast_runs order by id")[:1] == before
    manual.worker().finish(claim)
    assert manual.run_all() == 3


@pytest.mark.contract("P2")
def test_runs_of_other_keys_do_not_wait(manual: Manual, process: Any) -> None:
    for document in "abc":
        process.submit(document)
        process.submit(document)

    claims = manual.worker().claim(limit=10)

    assert [claim.lease.entry.key for claim in claims] == ["document:a", "document:b", "document:c"]


@pytest.mark.contract("P2")
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("tenant", "tenant:t1"),
        ("{tenant}/{number}", "t1/7"),
        (lambda tenant, number: f"{tenant.upper()}-{number % 2}", "T1-1"),
        (lambda tenant, number: None, None),
    ],
    ids=["parameter", "template", "function", "function that returns None"],
)
def test_a_key_comes_from_a_parameter_a_template_or_a_function(hf: Holdfast, key: Any, expected: str | None) -> None:
    @hf.job(name="work", key=key)
    def work(tenant: str, number: int) -> None: ...

    assert work.submit("t1", 7).snapshot.key == expected


@pytest.mark.contract("P2")
def test_two_jobs_with_the_same_key_share_it(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="one", key="{document}")
    def one(document: str) -> None: ...

    @hf.job(name="two", key="{document}")
    def two(document: str) -> None: ...

    one.submit("a")
    two.submit("a")
    assert len(manual.worker().claim(limit=5)) == 1


@pytest.mark.contract("P2")
def test_the_database_refuses_a_second_lease_of_a_key_that_is_inserted_with_sql(
    hf: Holdfast, manual: Manual, database: Database, process: Any
) -> None:
    """The second lease is a copy with the id of another run, inserted with SQL on another connection."""
    process.submit("a")
    second = process.submit("a")
    [claim] = manual.worker().claim()

    with pytest.raises(database.errors, match=r"(?i)unique|duplicate"):
        database.run(
            "insert into holdfast_leases (run_id, job, queue, rank, run_key, claim, attempt, takeovers, holder, "
            f"started_at, expires_at) select '{second.id}', job, queue, rank, run_key, 1, 1, 0, 'by hand', "
            f"started_at, expires_at from holdfast_leases where run_id = '{claim.lease.run_id}'"
        )
    with pytest.raises(database.errors, match=r"(?i)unique|duplicate"):
        database.run(
            "insert into holdfast_leases (run_id, job, queue, rank, run_key, claim, attempt, takeovers, holder, "
            f"started_at, expires_at) select run_id, job, queue, rank, run_key, 9, 1, 0, 'by hand', "
            f"started_at, expires_at from holdfast_leases where run_id = '{claim.lease.run_id}'"
        )

    assert database.count("leases") == 1
    assert second.refresh().state == "queued"


@pytest.mark.contract("P2", "P4", "Q12")
def test_a_run_is_not_started_and_waits_if_sql_has_inserted_a_lease_of_its_key(
    hf: Holdfast, manual: Manual, database: Database, clock: FakeClock, process: Any
) -> None:
    run, other = process.submit("a"), process.submit("a")
    database.run(
        "insert into holdfast_leases (run_id, job, queue, rank, run_key, claim, attempt, takeovers, holder, "
        "started_at, expires_at) select id, job, queue, 0, run_key, 1, 1, 0, 'by hand', "
        f"created_at, created_at from holdfast_runs where id = '{other.id}'"
    )

    assert manual.worker().claim() == []

    waiting = run.refresh().snapshot
    assert (waiting.place, waiting.reason) == ("waits", "another lease already holds its key")
    database.run(f"delete from holdfast_leases where run_id = '{other.id}'")
    clock.advance(2 * hf.settings.lease)
    assert manual.run_all() == 2
    assert run.result(timeout=1) == "a"


@pytest.mark.contract("P9")
def test_no_younger_run_overtakes_between_two_runs_of_a_key(hf: Holdfast, manual: Manual, process: Any) -> None:
    """The key lock of a finished run stays open until it is given to the oldest waiting run."""
    process.submit("a")
    older = process.submit("a")
    worker = manual.worker()
    [claim] = worker.claim()
    worker.finish(claim)

    younger = process.submit("a")
    assert worker.claim() == []
    manual.orchestrate()

    [claim] = worker.claim(limit=5)
    assert claim.lease.run_id == older.id
    assert younger.refresh().state == "queued"


@pytest.mark.contract("P9")
def test_priority_does_not_reorder_the_runs_of_one_key(hf: Holdfast, manual: Manual, process: Any) -> None:
    process.submit("a")
    second = process.submit("a")
    process.using(priority=100).submit("a")
    worker = manual.worker()
    worker.finish(worker.claim()[0])
    manual.orchestrate()

    assert worker.claim()[0].lease.run_id == second.id


@pytest.mark.contract("P9")
def test_a_delayed_run_lets_others_of_its_key_start_and_is_the_oldest_when_due(
    hf: Holdfast, manual: Manual, clock: FakeClock, process: Any
) -> None:
    delayed = process.using(delay=60).submit("a")
    running, waiting = process.submit("a"), process.submit("a")
    worker = manual.worker()
    [claim] = worker.claim(limit=5)
    assert claim.lease.run_id == running.id

    clock.advance(61)
    manual.orchestrate()
    # The lease expired meanwhile, so its run is ready again and runs first.
    [claim] = worker.claim(limit=5)
    assert claim.lease.run_id == running.id
    worker.finish(claim)
    manual.orchestrate()

    [claim] = worker.claim(limit=5)
    assert claim.lease.run_id == delayed.id
    worker.finish(claim)
    manual.orchestrate()
    assert worker.claim()[0].lease.run_id == waiting.id


@pytest.mark.contract("P9")
@pytest.mark.parametrize("order", ["due", "strict"])
def test_a_retried_run_gives_up_its_key_while_it_waits_unless_the_order_is_strict(
    hf: Holdfast, manual: Manual, clock: FakeClock, order: str
) -> None:
    done: list[int] = []

    @hf.job(name="work", key="name", max_attempts=2, key_order=order, retry=Retry(delay=timedelta(minutes=5)))
    def work(name: str, number: int) -> None:
        done.append(number)
        if done == [1]:
            raise ValueError

    first, _ = work.submit("a", 1), work.submit("a", 2)
    manual.run_all()

    assert done == ([1, 2] if order == "due" else [1])
    assert any("strict" in reason for reason in first.why().reasons) == (order == "strict")
    clock.advance(600)
    manual.run_all()
    assert done == ([1, 2, 1] if order == "due" else [1, 1, 2])
    assert hf.verify() == []


@pytest.mark.contract("P2", "Q12", "S3")
def test_concurrent_submitters_and_claimers_never_run_a_key_twice_at_once(url: str, database: Database) -> None:
    """Eight threads on two engines submit, claim, finish and promote; the test checks that no runs of a key overlap."""
    keys, each, threads = 5, 12, 8
    inside: dict[str, int] = {}
    guard = threading.Lock()
    overlaps: list[str] = []
    order: dict[str, list[str]] = {}
    engines = [Holdfast(url) for _ in range(2)]
    jobs = []
    for hf in engines:

        @hf.job(name="work", key="{name}")
        def work(name: str) -> None: ...

        hf.start()
        jobs.append(work)

    def act(index: int) -> None:
        hf, job = engines[index % 2], jobs[index % 2]
        manual = Manual(hf)
        worker = manual.worker(f"w{index}")
        for number in range(each * keys // threads + 1):
            job.submit(str((index + number) % keys))
            for claim in worker.claim(limit=3):
                key = str(claim.lease.entry.key)
                with guard:
                    if inside.get(key):
                        overlaps.append(key)
                    inside[key] = 1
                    order.setdefault(key, []).append(claim.lease.run_id)
                with guard:
                    inside[key] = 0
                worker.finish(claim, Succeeded())
            manual.promote()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(act, range(threads)))
    Manual(engines[0]).run_all()

    assert overlaps == []
    assert engines[0].verify() == []
    assert database.count("outcomes") == database.count("runs")
    assert database.count("key_locks") == database.count("waits") == database.count("ready") == 0
    for hf in engines:
        hf.close()


@pytest.mark.contract("P2", "P8")
def test_every_outcome_frees_the_key(hf: Holdfast, manual: Manual, clock: FakeClock, process: Any) -> None:
    worker = manual.worker()

    def end_by(how: str) -> None:
        run, follower = process.submit("a"), process.submit("a")
        if how == "cancelled while ready":
            run.cancel()
        else:
            [claim] = worker.claim()
            match how:
                case "succeeded":
                    worker.finish(claim)
                case "failed":
                    worker.finish(claim, Failed("ERROR", "x"))
                case "cancelled while running":
                    run.cancel()
                    clock.advance(2 * hf.settings.lease)
                case "timed out":
                    hold_past_the_deadline(worker, claim, clock)
        manual.orchestrate()
        [claim] = worker.claim()
        assert claim.lease.run_id == follower.id, how
        worker.finish(claim)
        manual.orchestrate()

    for how in ("succeeded", "failed", "cancelled while ready", "cancelled while running", "timed out"):
        end_by(how)
    assert hf.verify() == []
