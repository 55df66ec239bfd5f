"""Claims and leases: only the holder of the latest claim can renew or finish a run."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Holdfast, LeaseLost
from holdfast.runs import steps
from holdfast.runs.claim import claim_runs
from holdfast.runs.finish import finish_runs
from holdfast.runs.outcomes import Failed, Outcome, Release, RetryLater, Succeeded, TimedOut
from holdfast.testing import FakeClock, Manual
from holdfast.values.runs import Step
from holdfast.worker.event_buffer import EventBuffer
from holdfast.worker.run_services import StepWriter

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.fixture
def work(hf: Holdfast) -> Any:
    @hf.job(name="work")
    def work(number: int = 0) -> str:
        return "done"

    return work


@pytest.mark.contract("L5", "Q12")
def test_a_stale_worker_cannot_finish_a_run_that_another_has_claimed(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    run = work.submit()
    stale = manual.worker("a")
    [lost] = stale.claim()
    clock.advance(2 * hf.settings.lease)
    manual.orchestrate()
    fresh = manual.worker("b")
    [held] = fresh.claim()

    with pytest.raises(LeaseLost):
        stale.finish(lost, Succeeded('"stale"'))
    fresh.finish(held, Succeeded('"fresh"'))

    assert run.result(timeout=1) == "fresh"
    assert hf.verify() == []


@pytest.mark.contract("L3", "P4", "X2")
def test_a_claim_moves_the_run_and_writes_the_lease_in_one_transaction(
    hf: Holdfast, manual: Manual, database: Database, clock: FakeClock, work: Any
) -> None:
    run = work.submit()

    class Crash(Exception):
        pass

    def claim(tx: Any) -> None:
        claimed = claim_runs(
            tx,
            ["default"],
            jobs=["work"],
            holder="w",
            limit=5,
            lease_for=hf.settings.lease,
            kill_grace=hf.settings.kill_grace,
        )
        assert [one.lease.run_id for one in claimed] == [run.id]
        raise Crash

    with pytest.raises(Crash):
        hf.do(claim)
    assert run.refresh().snapshot.place == "ready"

    assert len(manual.worker("w").claim()) == 1
    seen = run.refresh().snapshot
    assert (seen.state, seen.place, seen.holder) == ("running", "leases", "w")
    assert seen.started_at == clock.now()
    assert seen.expires_at == clock.now() + hf.settings.lease
    assert seen.deadline_at == clock.now() + timedelta(seconds=120)
    assert (database.count("ready"), database.count("leases")) == (0, 1)


@pytest.mark.contract("Q12", "X2", "S3")
def test_each_run_is_claimed_by_one_of_many_workers(url: str, database: Database) -> None:
    """Two engines, six threads, 120 runs: no run is claimed twice and none is left."""
    engines = [Holdfast(url) for _ in range(2)]
    for hf in engines:

        @hf.job(name="work")
        def work() -> None: ...

    engines[0].jobs["work"].submit_many([{}] * 120)
    gate = threading.Barrier(6)

    def claim(index: int) -> list[str]:
        worker = Manual(engines[index % 2]).worker(f"w{index}")
        gate.wait()
        taken: list[str] = []
        while claims := worker.claim(limit=5):
            taken += [one.lease.run_id for one in claims]
        return taken

    with ThreadPoolExecutor(6) as pool:
        taken = [run_id for some in pool.map(claim, range(6)) for run_id in some]

    assert len(taken) == len(set(taken)) == 120 == database.count("leases")
    assert engines[0].verify() == []
    for hf in engines:
        hf.close()


@pytest.mark.contract("X2")
def test_on_postgres_a_claim_skips_locked_rows(postgres_url: str) -> None:
    import psycopg

    with Holdfast(postgres_url) as hf:

        @hf.job(name="work")
        def work() -> None: ...

        first, second = work.submit(), work.submit()
        with psycopg.connect(postgres_url) as other:
            other.execute("select * from holdfast_ready where run_id = %s for update", [first.id])
            [claim] = Manual(hf).worker().claim(limit=5)
        assert claim.lease.run_id == second.id
        assert Manual(hf).worker().claim()[0].lease.run_id == first.id


@pytest.mark.contract("L4")
def test_a_worker_name_contains_host_and_process_and_is_unique(hf: Holdfast) -> None:
    import os
    import socket

    names = {hf.ids.holder("stage") for _ in range(100)}

    assert len(names) == 100
    assert all(name.startswith(f"{socket.gethostname()[:60]}:{os.getpid()}:stage:") for name in names)


@pytest.mark.contract("L4")
def test_a_renewal_extends_the_lease_from_now(hf: Holdfast, manual: Manual, clock: FakeClock, work: Any) -> None:
    run = work.submit()
    worker = manual.worker()
    [claim] = worker.claim()
    for _ in range(5):
        clock.advance(hf.settings.renew_every)
        worker.renew(claim)
        assert run.refresh().snapshot.expires_at == clock.now() + hf.settings.lease
        assert manual.orchestrate() == 0
    worker.finish(claim)
    assert run.refresh().state == "succeeded"


@pytest.mark.contract("L4", "P7")
def test_a_lease_outlives_the_deadline_only_by_the_time_to_kill_and_to_record_it(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    run = work.submit()
    worker = manual.worker()
    [claim] = worker.claim()
    end = clock.now() + timedelta(seconds=120) + hf.settings.kill_grace + hf.settings.lease / 3
    for _ in range(40):
        clock.advance(5)
        if clock.now() <= end:
            worker.renew(claim)
            expires_at = run.refresh().snapshot.expires_at
            assert expires_at is not None
            assert expires_at <= end


STALE: list[tuple[str, Any]] = [
    ("finish succeeded", lambda worker, claim: worker.finish(claim, Succeeded('"stale"'))),
    ("finish failed", lambda worker, claim: worker.finish(claim, Failed("ERROR", "stale"))),
    ("finish timed out", lambda worker, claim: worker.finish(claim, TimedOut("stale"))),
    ("try later", lambda worker, claim: worker.finish(claim, RetryLater("stale", timedelta(0)))),
    ("release", lambda worker, claim: worker.finish(claim, Release("stale"))),
    ("renew", lambda worker, claim: worker.renew(claim)),
    ("step", lambda worker, claim: _remember(worker, claim)),
    ("forget", lambda worker, claim: _forget(worker, claim)),
    ("artifact", lambda worker, claim: _keep(worker, claim)),
]


def _remember(worker: Any, claim: Any) -> None:
    now = worker.hf.clock.now()
    step = Step(name="s", result="1", claim=claim.lease.claim, attempts=1, started_at=now, finished_at=now)
    StepWriter(worker.hf, worker.name).remember(claim.lease, step, itertools.count(1))


def _forget(worker: Any, claim: Any) -> None:
    worker.hf.do(lambda tx: steps.forget(tx, claim.lease, "s"))


def _keep(worker: Any, claim: Any) -> None:
    from holdfast.artifacts import artifacts

    hf = worker.hf
    artifacts.keep(hf.store, hf._artifact_store, claim, "file.txt", b"stale", part=None, max_bytes=100)


@pytest.mark.contract("L5", "L7")
@pytest.mark.parametrize(("name", "write"), STALE, ids=[name for name, _ in STALE])
@pytest.mark.parametrize("since", ["requeued", "claimed by another", "claimed by the same", "ended"])
def test_no_write_of_a_stale_claim_changes_anything(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, work: Any, name: str, write: Any, since: str
) -> None:
    """After its lease has expired, every write of a worker is refused, whatever has happened to the run since."""
    run = work.submit()
    worker = manual.worker("suspended")
    [stale] = worker.claim()
    clock.advance(2 * hf.settings.lease)
    manual.orchestrate()
    other = manual.worker("suspended" if since == "claimed by the same" else "other")
    if since != "requeued":
        [fresh] = other.claim()
        assert fresh.lease.claim == stale.lease.claim + 1
    if since == "ended":
        other.finish(fresh, Succeeded('"right"'))
    before = (database.counts(), run.refresh().snapshot)

    with pytest.raises(LeaseLost) as caught:
        write(worker, stale)

    assert caught.value.code == "lease_lost"
    assert (database.counts(), run.refresh().snapshot) == before
    assert hf.verify() == []


@pytest.mark.contract("L5", "L7")
def test_events_of_a_stale_claim_are_not_stored(hf: Holdfast, manual: Manual, clock: FakeClock, work: Any) -> None:
    run = work.submit()
    [stale] = manual.worker("suspended").claim()
    clock.advance(2 * hf.settings.lease)
    manual.orchestrate()
    [fresh] = manual.worker("suspended").claim()
    event_buffer = EventBuffer("suspended")
    for claim, message in ((stale, "stale"), (fresh, "fresh")):
        event_buffer.add(claim.lease, "LOG", {"message": message}, at=clock.now())
    hf.do(lambda tx: event_buffer.write(tx, event_buffer.take()))
    assert [event.data["message"] for event in run.timeline() if event.kind == "LOG"] == ["fresh"]


@pytest.mark.contract("L5")
@pytest.mark.parametrize("wrong", ["holder", "claim"])
def test_a_finish_needs_the_holder_and_the_claim(hf: Holdfast, manual: Manual, work: Any, wrong: str) -> None:
    from dataclasses import replace

    run = work.submit()
    worker = manual.worker("right")
    [claim] = worker.claim()
    lease = claim.lease
    if wrong == "claim":
        lease = replace(lease, entry=lease.entry.changed(claim=lease.claim + 1))
    holder = "wrong" if wrong == "holder" else "right"

    lost = hf.do(lambda tx: finish_runs(tx, [(lease, Succeeded())], holder=holder))

    assert lost == {run.id}
    assert run.refresh().state == "running"


@pytest.mark.contract("L5", "S3")
def test_in_a_batch_of_finishes_a_lost_lease_loses_only_its_own_run(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    runs = [work.submit(number) for number in range(5)]
    worker = manual.worker("a")
    claims = worker.claim(limit=5)
    clock.advance(hf.settings.lease / 2)
    for claim in claims[:2] + claims[3:]:
        worker.renew(claim)
    clock.advance(hf.settings.lease * 0.6)
    manual.orchestrate()

    results: list[Outcome] = [Succeeded(), Failed("ERROR"), Succeeded(), Succeeded(), RetryLater("x", timedelta(0))]
    pairs = [(claim.lease, result) for claim, result in zip(claims, results, strict=True)]
    lost = hf.do(lambda tx: finish_runs(tx, pairs, holder="a"))

    assert lost == {runs[2].id}
    assert [run.refresh().state for run in runs] == ["succeeded", "failed", "queued", "succeeded", "queued"]
    assert hf.verify() == []


@pytest.mark.contract("L5")
def test_a_claim_number_is_never_reused(hf: Holdfast, manual: Manual, clock: FakeClock, work: Any) -> None:
    run = work.using(max_attempts=3).submit()
    worker = manual.worker()
    seen: list[int] = []
    for ending in (Release("x"), RetryLater("x", timedelta(0)), None, Release("y"), RetryLater("z", timedelta(0))):
        [claim] = worker.claim()
        seen.append(claim.lease.claim)
        if ending is None:
            clock.advance(2 * hf.settings.lease)
        else:
            worker.finish(claim, ending)
        manual.orchestrate()

    assert seen == [1, 2, 3, 4, 5]
    [claim] = worker.claim()
    assert (claim.lease.claim, claim.lease.entry.attempt, claim.lease.entry.takeovers) == (6, 3, 1)
    worker.finish(claim)
    assert run.refresh().state == "succeeded"


@pytest.mark.contract("S3")
def test_a_worker_claims_only_jobs_that_it_knows_and_queues_that_it_serves(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="known")
    def known() -> None: ...

    @hf.job(name="unknown")
    def unknown() -> None: ...

    unknown.submit()
    known.using(queue="other").submit()
    mine = known.submit()

    claims = manual.worker(jobs=["known"]).claim(limit=10)

    assert [claim.lease.run_id for claim in claims] == [mine.id]
    assert manual.worker(jobs=[]).claim(limit=10) == []
    assert manual.worker(queues=[]).claim(limit=10) == []


@pytest.mark.contract("S3")
def test_a_worker_claims_from_its_first_queue_first(hf: Holdfast, manual: Manual, work: Any) -> None:
    work.using(queue="low", priority=9).submit()
    urgent = work.using(queue="urgent").submit()

    [claim] = manual.worker(queues=["urgent", "low"]).claim()
    assert claim.lease.run_id == urgent.id
