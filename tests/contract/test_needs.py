"""Needs: a run that waits for others starts when all of them have ended, exactly once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.patience import hold_past_the_deadline

from holdfast import Holdfast
from holdfast.orchestrator import promote
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.conftest import Database


@pytest.fixture
def work(hf: Holdfast) -> Any:
    @hf.job(name="work")
    def work(name: str, fail: bool = False) -> str:
        if fail:
            raise ValueError(name)
        return name

    return work


@pytest.mark.contract("S3", "L2")
def test_a_run_starts_once_all_that_it_needs_have_succeeded(hf: Holdfast, manual: Manual, work: Any) -> None:
    first, second = work.submit("first"), work.submit("second")
    last = work.using(after=[first, second.id]).submit("last")
    worker = manual.worker()
    claims = worker.claim(limit=5)
    assert [claim.lease.run_id for claim in claims] == [first.id, second.id]

    worker.finish(claims[0])
    manual.orchestrate()
    assert last.refresh().snapshot.place == "waits"
    worker.finish(claims[1])
    assert last.refresh().snapshot.place == "waits", "a worker advances no one; the orchestrator does"
    manual.orchestrate()

    assert last.refresh().snapshot.place == "ready"
    manual.run_all()
    assert last.result(timeout=1) == "last"
    assert hf.verify() == []


@pytest.mark.contract("S3")
@pytest.mark.parametrize("ending", ["failed", "cancelled", "timed_out"])
def test_a_need_that_ends_badly_fails_those_who_needed_its_success(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, work: Any, ending: str
) -> None:
    needed = work.submit("needed", fail=True)
    other = work.using(delay=timedelta(days=1)).submit("other")
    strict = work.using(after=[needed, other]).submit("strict")
    downstream = work.using(after=[strict]).submit("downstream")
    tolerant = work.using(after={needed: False}).submit("tolerant")
    match ending:
        case "failed":
            manual.run_all()
        case "cancelled":
            needed.cancel()
        case "timed_out":
            hold_past_the_deadline(manual.worker(), manual.worker().claim()[0], clock)
    manual.run_all()

    assert (strict.refresh().state, strict.snapshot.failure_type) == ("failed", "NEED_FAILED")
    assert needed.id in str(strict.snapshot.error)
    assert (downstream.refresh().state, downstream.snapshot.failure_type) == ("failed", "NEED_FAILED")
    assert tolerant.result(timeout=1) == "tolerant"
    assert database.count("needs") == 0
    assert hf.verify() == []


@pytest.mark.contract("S3")
def test_a_need_that_has_already_ended_is_met_at_once(hf: Holdfast, manual: Manual, work: Any) -> None:
    done = work.submit("done")
    manual.run_all()
    late = work.using(after=[done]).submit("late")
    manual.run_all()
    assert late.result(timeout=1) == "late"


@pytest.mark.contract("S3", "P9")
def test_needs_key_and_time_all_have_to_be_met(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="keyed", key="{key}")
    def keyed(key: str) -> None: ...

    need = keyed.submit("other")
    run = keyed.using(after=[need], delay=60).submit("k")
    holder = keyed.submit("k")
    worker = manual.worker()
    claims = {claim.lease.run_id: claim for claim in worker.claim(limit=5)}
    assert claims.keys() == {need.id, holder.id}

    worker.finish(claims[need.id])
    manual.orchestrate()
    assert "due at" in run.why().reasons[0]
    for _ in range(6):
        clock.advance(10)
        worker.renew(claims[holder.id])
        manual.orchestrate()
    assert f"held by run {holder.id}" in run.why().reasons[0]
    worker.finish(claims[holder.id])
    manual.orchestrate()
    assert run.refresh().snapshot.place == "ready"
    assert hf.verify() == []


@pytest.mark.contract("S3")
def test_a_ring_that_was_lost_strands_no_one(hf: Holdfast, manual: Manual, database: Database, work: Any) -> None:
    """The looks are gone and no one rang: the page through all needs finds the waiter."""
    first = work.submit("first")
    waiter = work.using(after=[first]).submit("waiter")
    manual.orchestrate()
    database.run("update holdfast_waits set look = 0")
    [claim] = manual.worker().claim()
    manual.worker().finish(claim)

    assert hf.do(lambda tx: promote.looks(tx, limit=10)) == 0
    hf.do(lambda tx: promote.needs_after(tx, ("", ""), limit=1000))
    assert waiter.refresh().snapshot.place == "ready"


@pytest.mark.contract("S3", "L2")
def test_two_orchestrators_at_two_needs_of_one_run_promote_it_once(url: str, database: Database) -> None:
    """The lost-update of counting: each must subtract only what its own DELETE returned."""
    hf = Holdfast(url)

    @hf.job(name="work")
    def work(number: int) -> None: ...

    for _ in range(10):
        needed = work.submit_many([{"number": n} for n in range(4)])
        waiter = work.using(after=needed).submit(99)
        manual = Manual(hf)
        worker = manual.worker()
        for claim in worker.claim(limit=4):
            worker.finish(claim)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda run: hf.do(lambda tx: promote.needs(tx, [run.id], limit=10)), needed))
        assert waiter.refresh().snapshot.place == "ready"
        manual.run_all()
    assert database.count("needs") == 0
    assert hf.verify() == []
    hf.close()
