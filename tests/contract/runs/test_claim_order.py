"""Claim order: by priority, then by age, and never before the due time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import Holdfast, InvalidArguments, RunFilter
from holdfast.testing import FakeClock, Manual


@pytest.mark.contract("P9")
def test_higher_priority_first_then_the_oldest(hf: Holdfast, manual: Manual) -> None:
    done: list[str] = []

    @hf.job(name="work")
    def work(name: str) -> None:
        done.append(name)

    for name, priority in [("a", 0), ("b", 5), ("c", -5), ("d", 5), ("e", 0)]:
        work.using(priority=priority).submit(name)
    manual.run_all()

    assert done == ["b", "d", "a", "e", "c"]


@pytest.mark.contract("Q10")
@pytest.mark.parametrize("oldest_first", [False, True])
def test_a_claim_of_fewer_runs_than_are_ready_takes_the_oldest_ones(
    hf: Holdfast, manual: Manual, oldest_first: bool
) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    runs = [work.submit().id for _ in range(4)]
    worker = manual.worker()
    claimed = [worker.claim(limit=2, oldest_first=oldest_first) for _ in range(2)]
    assert [[claim.lease.run_id for claim in claims] for claims in claimed] == [runs[:2], runs[2:]]


@pytest.mark.contract("P9", "S3")
def test_a_claim_by_age_takes_the_oldest_regardless_of_priority(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    low = work.using(priority=-5).submit()
    work.using(priority=5).submit()

    [claim] = manual.worker().claim(oldest_first=True)
    assert claim.lease.run_id == low.id


@pytest.mark.contract("S3")
@pytest.mark.parametrize("by", ["delay", "due_at", "seconds"])
def test_a_delayed_run_starts_when_it_is_due_and_not_before(
    hf: Holdfast, manual: Manual, clock: FakeClock, by: str
) -> None:
    @hf.job(name="work")
    def work() -> str:
        return "done"

    minute = timedelta(minutes=1)
    ways: dict[str, dict[str, Any]] = {
        "delay": {"delay": minute},
        "due_at": {"due_at": clock.now() + minute},
        "seconds": {"delay": 60},
    }
    run = work.using(**ways[by]).submit()

    clock.advance(59.999)
    assert manual.run_all() == 0
    assert run.refresh().state == "queued"
    clock.advance(0.001)
    assert manual.run_all() == 1
    assert run.result(timeout=1) == "done"


@pytest.mark.contract("S3")
def test_a_due_time_in_the_past_means_now(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    run = work.using(due_at=clock.now() - timedelta(days=1)).submit()
    assert run.snapshot.place == "ready"
    assert manual.run_all() == 1


@pytest.mark.contract("S3")
def test_runs_can_be_listed_and_filtered_newest_first(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work(number: int) -> None: ...

    @hf.job(name="fail", queue="other")
    def fail() -> None:
        raise ValueError

    runs = [work.submit(number) for number in range(5)]
    failing = fail.submit()
    manual.run_all()
    waiting = work.submit(6)

    assert [run.id for run in hf.search().items] == [waiting.id, failing.id, *(run.id for run in reversed(runs))]
    assert [run.id for run in hf.search(RunFilter(state="failed")).items] == [failing.id]
    assert [run.id for run in hf.search(RunFilter(state="queued")).items] == [waiting.id]
    with pytest.raises(InvalidArguments, match="there is no state 'done'; the states are queued, running"):
        RunFilter(state="done")
    assert [run.id for run in hf.search(RunFilter(queue="other")).items] == [failing.id]
    assert [run.id for run in hf.search(RunFilter(job="work"), limit=2).items] == [waiting.id, runs[4].id]
    assert [run.id for run in hf.search(RunFilter(job="work"), before=runs[2].id).items] == [runs[1].id, runs[0].id]
