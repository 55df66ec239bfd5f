"""Gauges: one row a minute with the numbers of waiting and running runs; no rows while the database is idle."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from holdfast import Holdfast
from holdfast.orchestrator.periodic import PeriodicTask
from holdfast.orchestrator.statistics import FIRST_SAMPLE_AFTER, gauge_task
from holdfast.statistics.gauges import KEPT, MINUTE
from holdfast.testing import FakeClock, Manual

DAY = timedelta(days=1)
EVERY = MINUTE.total_seconds()


@pytest.fixture
def samplers(hf: Holdfast, clock: FakeClock) -> list[PeriodicTask]:
    hf.start()
    hf.job(name="work")(lambda: None)
    return [gauge_task(hf.store, clock), gauge_task(hf.store, clock)]


def let_time_pass(samplers: list[PeriodicTask], clock: FakeClock, *, seconds: float) -> None:
    for _ in range(int(seconds)):
        clock.advance(1)
        for sampler in samplers:
            sampler.tick()


def test_every_minute_has_one_gauge_row_however_many_processes_write(
    hf: Holdfast, clock: FakeClock, manual: Manual, samplers: list[PeriodicTask]
) -> None:
    hf.submit("work")
    hf.jobs["work"].using(delay=3600).submit()
    manual.worker("a").claim()
    hf.submit("work")
    let_time_pass(samplers, clock, seconds=FIRST_SAMPLE_AFTER + 3 * EVERY)
    found = hf.statistics.gauges(DAY)
    assert [(one.waiting, one.running) for one in found] == [(2, 1)] * len(found)
    assert len({one.at for one in found}) == len(found)
    assert all(later.at - sooner.at == timedelta(minutes=1) for sooner, later in itertools.pairwise(found))
    assert len(found) in (3, 4)
    assert found[-1].oldest is not None
    assert found[-1].oldest >= timedelta(minutes=2)


def test_an_idle_database_gets_one_gauge_row_and_then_no_more(
    hf: Holdfast, clock: FakeClock, manual: Manual, samplers: list[PeriodicTask]
) -> None:
    let_time_pass(samplers, clock, seconds=FIRST_SAMPLE_AFTER + 2 * EVERY)
    assert hf.statistics.gauges(DAY) == []

    hf.submit("work")
    let_time_pass(samplers, clock, seconds=EVERY)
    manual.run_all()
    let_time_pass(samplers, clock, seconds=5 * EVERY)
    assert [one.quiet for one in hf.statistics.gauges(DAY)] == [False, True]


def test_old_gauge_rows_are_pruned(hf: Holdfast, clock: FakeClock, samplers: list[PeriodicTask]) -> None:
    hf.submit("work")
    let_time_pass(samplers, clock, seconds=FIRST_SAMPLE_AFTER + EVERY)
    assert hf.statistics.gauges(KEPT)
    clock.advance(KEPT.total_seconds() + 60)
    hf.prune()
    assert hf.read(lambda tx: tx.all("find_gauges", since=clock.now() - 10 * DAY, limit=10)) == []
