"""Key limits: at most `key_limit` runs of a key at once, each with a numbered key lock."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.listing import runs_of

from holdfast import Holdfast
from holdfast.orchestrator import promote
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.outcomes import RetryLater, Succeeded
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.fixture
def call(hf: Holdfast) -> Any:
    @hf.job(name="call", key="tenant", key_limit=3)
    def call(tenant: str, number: int = 0) -> None: ...

    return call


def numbers(claims: list[ClaimedRun]) -> list[int]:
    return sorted(claim.lease.entry.key_number for claim in claims)


@pytest.mark.contract("P2", "P9")
def test_the_limit_of_a_key_is_filled_oldest_first(hf: Holdfast, manual: Manual, call: Any) -> None:
    runs = [call.submit("t", number) for number in range(8)]
    worker = manual.worker()
    started: list[str] = []

    while len(started) < 8:
        manual.orchestrate()
        claims = worker.claim(limit=10)
        assert 0 < len(claims) <= 3
        assert len(set(numbers(claims))) == len(claims), "two runs must not have the same key lock"
        assert set(numbers(claims)) <= {1, 2, 3}
        manual.orchestrate()
        assert worker.claim(limit=10) == [], "a fourth run of the key must not start while three run"
        started += sorted(claim.lease.run_id for claim in claims)
        for claim in claims:
            worker.finish(claim)

    assert started == [run.id for run in runs]
    manual.orchestrate()
    assert hf.verify() == []


@pytest.mark.contract("P2", "P9")
def test_an_ended_run_lets_exactly_one_other_start(manual: Manual, call: Any) -> None:
    runs = [call.submit("t") for _ in range(6)]
    worker = manual.worker()
    manual.orchestrate()
    claims = worker.claim(limit=10)

    worker.finish(claims[1])
    manual.orchestrate()

    [fourth] = worker.claim(limit=10)
    assert fourth.lease.run_id == runs[3].id
    assert fourth.lease.entry.key_number == claims[1].lease.entry.key_number


@pytest.mark.contract("P9")
def test_priority_does_not_reorder_within_a_key(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work", key="document")
    def work(document: str) -> None: ...

    first = work.submit("a")
    second = work.using(priority=1).submit("a")
    third = work.using(priority=1_000).submit("a")
    worker, started = manual.worker(), []
    for _ in range(3):
        manual.orchestrate()
        [claim] = worker.claim(limit=5)
        started.append(claim.lease.run_id)
        worker.finish(claim)

    assert started == [first.id, second.id, third.id]


@pytest.mark.contract("P2")
@pytest.mark.parametrize(
    ("number", "key_limit", "refused"),
    [(1, 3, r"unique|duplicate"), (2, 3, r"unique|duplicate"), (4, 3, r"check|violates"), (0, 3, r"check|violates")],
    ids=["the first lock again", "the second lock again", "a fourth of three locks", "a lock number of zero"],
)
def test_the_database_refuses_a_lease_beyond_the_limit(
    hf: Holdfast, manual: Manual, database: Database, call: Any, number: int, key_limit: int, refused: str
) -> None:
    *_, another = [call.submit("t") for _ in range(4)]
    manual.orchestrate()
    claims = manual.worker().claim(limit=10)
    assert numbers(claims) == [1, 2, 3]

    with pytest.raises(database.errors, match=rf"(?i){refused}"):
        database.run(
            "insert into holdfast_leases (run_id, job, queue, rank, run_key, claim, attempt, takeovers, key_limit, "
            f"key_number, holder, started_at, expires_at) select '{another.id}', job, queue, rank, run_key, 1, 1, 0, "
            f"{key_limit}, {number}, 'by hand', started_at, expires_at from holdfast_leases "
            f"where run_id = '{claims[0].lease.run_id}'"
        )


@pytest.mark.contract("P2")
def test_jobs_with_different_limits_share_a_key_and_each_keeps_its_own_limit(hf: Holdfast, manual: Manual) -> None:
    """A run gets only a key lock whose number is within its own limit: `single` always gets number 1."""

    @hf.job(name="many", key="{document}", key_limit=3)
    def many(document: str) -> None: ...

    @hf.job(name="single", key="{document}", key_limit=1)
    def single(document: str) -> None: ...

    runs = [many.submit("a"), single.submit("a"), single.submit("a"), many.submit("a"), many.submit("a")]
    worker = manual.worker()
    manual.orchestrate()
    claims = worker.claim(limit=10)

    assert len(claims) == 3
    assert Counter(claim.lease.entry.job for claim in claims) == {"many": 2, "single": 1}
    assert {claim.lease.entry.key_number for claim in claims if claim.lease.entry.job == "single"} == {1}
    for claim in claims:
        worker.finish(claim)
    assert manual.run_all() == 2
    assert {run.refresh().state for run in runs} == {"succeeded"}
    assert hf.verify() == []


@pytest.mark.contract("P9")
def test_a_run_waiting_for_its_retry_gives_its_key_lock_to_another(
    hf: Holdfast, manual: Manual, clock: FakeClock, call: Any
) -> None:
    runs = [call.using(max_attempts=2).submit("t") for _ in range(4)]
    worker = manual.worker()
    manual.orchestrate()
    claims = {claim.lease.run_id: claim for claim in worker.claim(limit=10)}
    worker.finish(claims[runs[0].id], RetryLater("not yet", hf.settings.lease))
    manual.orchestrate()

    assert [claim.lease.run_id for claim in worker.claim(limit=10)] == [runs[3].id]
    assert "attempt 2 of" in hf.why(runs[0].id).reasons[0]


@pytest.mark.contract("P9", "S3")
def test_a_run_that_keeps_its_key_lock_while_waiting_gets_no_second_one(
    hf: Holdfast, manual: Manual, clock: FakeClock, call: Any
) -> None:
    strict = call.using(max_attempts=2, key_order="strict").submit("t")
    others = [call.submit("t") for _ in range(4)]
    worker = manual.worker()
    manual.orchestrate()
    claims = {claim.lease.run_id: claim for claim in worker.claim(limit=10)}
    worker.finish(claims[strict.id], RetryLater("not yet", hf.settings.poll_interval, key_order="strict"))
    clock.advance(hf.settings.poll_interval)  # the strict run is due and the oldest, but no orchestrator has noticed
    worker.finish(claims[others[0].id])

    hf.do(lambda tx: promote.assign_key_locks(tx, limit=10))

    assert [claim.lease.run_id for claim in worker.claim(limit=10)] == [others[2].id]
    manual.run_all()
    assert {run.refresh().state for run in (strict, *others[2:])} <= {"succeeded", "running"}
    assert strict.state == "succeeded"
    assert hf.verify() == []


def test_why_names_all_holders_of_the_key(hf: Holdfast, manual: Manual, call: Any) -> None:
    runs = [call.submit("t") for _ in range(5)]
    manual.orchestrate()
    manual.worker("w1").claim(limit=10)

    reason, _ = hf.why(runs[4].id).reasons

    assert all(run.id in reason for run in runs[:3])
    assert "1 older run waits for it too" in reason


@pytest.mark.contract("P2", "S3")
def test_real_workers_never_exceed_the_limit(live: Holdfast) -> None:
    running: Counter[str] = Counter()
    begun: Counter[str] = Counter()
    most: Counter[str] = Counter()
    meeting = {tenant: threading.Barrier(2) for tenant in "ab"}
    lock = threading.Lock()

    @live.job(name="call", key="tenant", key_limit=2)
    def call(tenant: str) -> None:
        with lock:
            running[tenant] += 1
            begun[tenant] += 1
            most[tenant] = max(most[tenant], running[tenant])
            first = begun[tenant] <= 2
        if first:
            meeting[tenant].wait(timeout=60)  # two runs of a tenant must run at the same time
        with lock:
            running[tenant] -= 1

    with live.worker(concurrency=8), live.worker(concurrency=8):
        runs = [call.submit(tenant) for _ in range(15) for tenant in "ab"]
        for run in runs:
            run.result(timeout=60)
    assert most == {"a": 2, "b": 2}
    assert live.verify() == []


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.sampled_from("kl"), st.integers(1, 3)),
        st.tuples(st.just("claim"), st.integers(1, 3)),
        st.tuples(st.just("finish"), st.integers(0, 5)),
        st.tuples(st.just("later"), st.integers(0, 5)),
        st.tuples(st.just("orchestrate")),
        st.tuples(st.just("advance")),
    ),
    max_size=40,
)


@pytest.mark.contract("P2", "S3")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_in_any_order_of_events_key_limits_hold_and_every_run_ends(
    hf: Holdfast, manual: Manual, clock: FakeClock, moves: list[Any]
) -> None:
    if "work" not in hf.jobs.names():

        @hf.job(name="work", key="{key}", max_attempts=100)
        def work(key: str) -> None: ...

    work = hf.jobs["work"]
    worker, held = manual.worker(), []
    for move in moves:
        match move:
            case ("submit", key, limit):
                work.using(key_limit=limit).submit(key)
            case ("claim", limit):
                held += worker.claim(limit=limit)
            case ("finish" | "later" as how, index) if held:
                claim = held.pop(index % len(held))
                worker.finish(claim, Succeeded() if how == "finish" else RetryLater("later", hf.settings.poll_interval))
            case ("orchestrate",):
                manual.orchestrate()
            case ("advance",):
                clock.advance(hf.settings.poll_interval)
        taken = [(claim.lease.entry.key, claim.lease.entry.key_number) for claim in held]
        assert len(set(taken)) == len(taken)
        assert all(claim.lease.entry.key_number <= claim.lease.entry.key_limit for claim in held)
    for claim in held:
        worker.finish(claim)
    for _ in range(3):
        clock.advance(hf.settings.poll_interval)
        manual.orchestrate()
        manual.run_all()
    assert runs_of(hf, state="queued") == runs_of(hf, state="running") == []
    assert hf.verify() == []
