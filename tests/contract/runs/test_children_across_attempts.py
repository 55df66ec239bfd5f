"""Children across attempts: a later attempt gets the same children, and a stale one gets none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.listing import runs_of

from holdfast import Context, Holdfast, InvalidArguments, InvalidPolicy, LeaseLost, Retry
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


def test_a_later_attempt_gets_the_same_children(hf: Holdfast, manual: Manual, clock: FakeClock, double: Any) -> None:
    ids: list[str] = []

    @hf.job(name="crashing", max_attempts=3, retry=Retry(delay=1, jitter=0))
    def crashing(ctx: Context) -> int:
        child = ctx.submit_child(double.using(idempotency_key="only"), len(ids))
        ids.append(child.id)
        if len(ids) == 1:
            raise OSError("after the child was submitted")
        return sum(ctx.gather(child))

    run = crashing.submit()
    manual.run_all()
    clock.advance(5)
    manual.run_all()
    assert run.result(timeout=1) == 0
    assert len(set(ids)) == 1
    assert hf.get(ids[0]).snapshot.segment == "only"


def test_a_named_child_does_not_change_the_numbers_of_the_others(
    hf: Holdfast, manual: Manual, clock: FakeClock, double: Any
) -> None:
    @hf.job(name="moody", max_attempts=2, retry=Retry(delay=1, jitter=0))
    def moody(ctx: Context) -> list[int]:
        if ctx.run.claim > 1:
            ctx.submit_child(double.using(idempotency_key="late"), 50)
        children = [ctx.submit_child(double, number) for number in (1, 2)]
        if ctx.run.claim == 1:
            raise OSError("again")
        return ctx.gather(*children)

    run = moody.submit()
    manual.run_all()
    clock.advance(5)
    manual.run_all()
    assert run.result(timeout=1) == [2, 4]


def test_a_child_is_a_new_run_even_if_its_job_is_unique(hf: Holdfast, manual: Manual, double: Any) -> None:
    only = double.using(unique="active")

    @hf.job(name="two")
    def two(ctx: Context) -> list[int]:
        return ctx.gather(ctx.submit_child(only, 7), ctx.submit_child(only, 7))

    run = two.submit()
    worker = manual.worker()
    worker.work(worker.claim()[0])
    other = only.submit(7)
    manual.run_all()
    assert run.result(timeout=1) == [14, 14]
    found = [(one.id == other.id, one.parent_id) for one in runs_of(hf) if one.job == "double"]
    assert sorted(found, key=str) == [(False, run.id), (False, run.id), (True, None)]


def test_a_child_that_changed_its_job_is_refused(hf: Holdfast, manual: Manual, clock: FakeClock, double: Any) -> None:
    other = hf.job(name="other")(lambda: None)

    @hf.job(name="moody", max_attempts=2, retry=Retry(delay=1, jitter=0))
    def moody(ctx: Context) -> None:
        if ctx.run.claim == 1:
            ctx.submit_child(double, 1)
            raise OSError("again")
        ctx.submit_child(other)

    run = moody.submit()
    manual.run_all()
    clock.advance(5)
    manual.run_all()
    assert "child 1" in str(run.refresh().snapshot.error)
    assert "was double in an earlier attempt" in str(run.snapshot.error)


@pytest.mark.contract("L5")
def test_a_stale_claim_submits_no_child(
    hf: Holdfast, manual: Manual, clock: FakeClock, double: Any, database: Database
) -> None:
    caught: list[type[BaseException]] = []

    @hf.job(name="stale")
    def stale(ctx: Context) -> None:
        clock.advance(2 * hf.settings.lease)
        manual.orchestrate()
        try:
            ctx.submit_child(double, 1)
        except LeaseLost:
            caught.append(LeaseLost)
            raise

    stale.submit()
    worker = manual.worker()
    [claim] = worker.claim()
    with pytest.raises(LeaseLost):
        worker.work(claim)
    assert caught == [LeaseLost]
    assert database.all("select count(*) from holdfast_runs where parent_id is not null") == [(0,)]


@pytest.mark.contract("S4")
def test_invalid_children_are_refused_and_nothing_is_written(hf: Holdfast, double: Any, manual: Manual) -> None:
    raised: list[str] = []

    @hf.job(name="wrong")
    def wrong(ctx: Context) -> None:
        attempts: list[tuple[type[Exception], Callable[[], object]]] = [
            (InvalidArguments, lambda: ctx.submit_child(double, "many")),
            (InvalidPolicy, lambda: ctx.submit_child(double.using(idempotency_key="1"), 1)),
            (InvalidPolicy, lambda: ctx.submit_child(double.using(connection=object()), 1)),
            (InvalidPolicy, lambda: ctx.gather("nothing")),  # type: ignore[call-overload]
        ]
        for expected, bad in attempts:
            with pytest.raises(expected):
                bad()
            raised.append(expected.__name__)

    run = wrong.submit()
    manual.run_all()
    assert run.result(timeout=1) is None
    assert len(raised) == 4
    assert len(runs_of(hf)) == 1
