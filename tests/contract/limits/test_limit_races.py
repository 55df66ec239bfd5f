"""Limits and concurrent transactions: rows may change between two statements."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.runs import ready
from holdfast.runs.claim import claim_runs
from holdfast.runs.limits import rates
from holdfast.testing import FakeClock, Manual

MINUTE = timedelta(minutes=1)


def before_permits_are_assigned(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Call `meanwhile` once, after a claim has taken its runs and before it assigns permits."""
    take = ready.take
    done: list[bool] = []

    def take_and_then(*args: Any, **options: Any) -> list[ready.Taken]:
        taken = take(*args, **options)
        if not done:
            done.append(True)
            meanwhile()
        return taken

    monkeypatch.setattr("holdfast.runs.ready.take", take_and_then)


@pytest.mark.contract("Q9")
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_claim_counts_permits_above_a_lowered_limit(
    hf: Holdfast, manual: Manual, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf.queue("q", concurrency=5)
    job = hf.job(name="work", queue="q")(lambda: None)
    job.submit_many([{}] * 9)
    worker, other = manual.worker("a", queues=["q"]), manual.worker("b", queues=["q"])
    running = worker.claim(limit=5)
    hf.queues.limit("q", concurrency=2)
    for claim in running[:4]:
        worker.finish(claim)
    started: list[Any] = []
    before_permits_are_assigned(monkeypatch, lambda: started.extend(other.claim()))

    started += worker.claim()

    assert [claim.lease.permit for claim in started] == [1]
    assert hf.verify() == []


@pytest.mark.contract("Q9")
def test_a_limit_may_be_any_number(hf: Holdfast, manual: Manual) -> None:
    hf.queue("q", concurrency=2**31 - 1)
    hf.job(name="work", queue="q")(lambda: None).submit_many([{}] * 3)
    assert [claim.lease.permit for claim in manual.worker("a", queues=["q"]).claim(limit=5)] == [1, 2, 3]


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_rate_row_that_a_claim_has_just_used_is_not_deleted(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    job = hf.job(name="mail", rate="1/min")(lambda: None)
    job.submit()
    [claim] = manual.worker("a").claim()
    manual.worker("a").finish(claim)
    clock.advance(timedelta(days=3))
    job.submit_many([{}] * 2)
    with hf.store.transaction() as tx:
        claims = claim_runs(
            tx, ["default"], jobs=["mail"], holder="a", limit=1, lease_for=10 * MINUTE, kill_grace=MINUTE
        )
        assert len(claims) == 1
        assert hf.store.do(lambda other: rates.forget(other, limit=9)) == 0
    assert manual.worker("b").claim() == [], "the rate was used up in the last minute"
