"""hf.statistics: overview, series, failures and totals."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.listing import runs_of

from holdfast import Holdfast
from holdfast.runs.limits import queues
from holdfast.statistics import overview, series
from holdfast.statistics.failures import normalise
from holdfast.testing import FakeClock, Manual


@pytest.fixture
def work(hf: Holdfast) -> Any:
    @hf.job(name="work")
    def work(n: int = 0) -> int:
        if n < 0:
            raise ValueError(f"no document doc-{n}")
        return n

    return work


def test_the_overview_shows_counts_by_state_and_their_age(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "MOST", 3)
    for queue, count in (("default", 2), ("deep", 5)):
        for _ in range(count):
            work.using(queue=queue).submit()
    work.using(queue="other", priority=3).submit()
    for _ in range(4):
        work.using(delay=3600, queue="late").submit()
    clock.advance(60)
    [_] = manual.worker().claim()
    hf.queues.pause("deep", note="for now")
    found = hf.statistics.overview()
    assert [(one.name, one.waiting, one.ready, one.running, one.more) for one in found.queues] == [
        ("deep", 0, 3, 0, True),
        ("default", 0, 1, 1, False),
        ("late", 4, 0, 0, True),
        ("other", 0, 1, 0, False),
    ]
    submitted = found.at - timedelta(seconds=60)
    assert [one.oldest_at for one in found.queues] == [submitted] * 4
    assert [one.oldest_ready_at for one in found.queues] == [submitted, submitted, None, submitted]
    assert (found.queued, found.more, found.oldest_waiting) == (9, True, timedelta(seconds=60))
    assert (found.running, found.capacity, found.workers, found.paused) == (1, 0, 0, ("deep",))


def test_the_overview_counts_live_workers_and_their_concurrency(live: Holdfast) -> None:
    with live.worker(concurrency=3), live.worker(concurrency=4):
        found = live.statistics.overview()
    assert (found.capacity, found.workers) == (7, 2)


def test_throughput_is_measured_over_the_last_ended_runs_and_says_how_many(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.submit(n=1)
    manual.run_all()
    clock.advance(overview.RECENT)
    for wait in range(1, 11):
        work.submit(n=-1 if wait == 10 else 1)
        work.using(queue="other").submit()
        hf.cancel(runs_of(hf, queue="other")[0].id)
        clock.advance(wait)
        manual.run_all()
    pace = hf.statistics.overview().pace
    assert (pace.runs, pace.since) == (20, clock.now() - overview.RECENT)
    assert pace.per_second == pytest.approx(20 / 300)
    assert pace.success_rate == 0.9
    assert (pace.waited.count, pace.waited.p95, pace.ran.count) == (20, 9, 10)

    monkeypatch.setattr(overview, "NEWEST", 6)
    pace = hf.statistics.overview().pace
    assert pace.runs < 6
    assert clock.now() - pace.since < timedelta(seconds=40)


def test_a_series_has_a_point_for_each_interval_in_which_a_run_ended(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any
) -> None:
    for n in (1, -1, 2):
        work.submit(n=n)
        work.using(queue="other").submit(n=n)
        manual.run_all()
        clock.advance(timedelta(minutes=20))
    manual.count_ended()
    every = hf.statistics.series(timedelta(hours=2))
    assert every.step == timedelta(minutes=1)
    assert [(point.runs, point.failed) for point in every.points] == [(2, 0), (2, 2), (2, 0)]
    assert [b.at - a.at for a, b in zip(every.points, every.points[1:], strict=False)] == [timedelta(minutes=20)] * 2
    for chosen in ({"job": "work"}, {"job": work}):
        assert [point.runs for point in hf.statistics.series(timedelta(hours=2), **chosen).points] == [2, 2, 2]
    for chosen in ({"queue": "other"}, {"job": "work", "queue": "other"}):
        assert [point.runs for point in hf.statistics.series(timedelta(hours=2), **chosen).points] == [1, 1, 1]
    assert hf.statistics.series(timedelta(hours=2), job="unknown").points == ()
    day = hf.statistics.series(timedelta(days=1))
    assert (day.step, sum(point.runs for point in day.points)) == (timedelta(minutes=10), 6)
    month = hf.statistics.series(timedelta(days=30))
    assert (month.step, sum(point.runs for point in month.points)) == (timedelta(hours=3), 6)
    assert timedelta(days=30) / month.step <= series.POINTS


def test_similar_failures_form_one_group(hf: Holdfast, clock: FakeClock, manual: Manual, work: Any) -> None:
    @hf.job(name="other", timeout=5)
    def other() -> None:
        raise KeyError("x")

    first = clock.now()
    for n in (-1, -22, -333):
        last = work.submit(n=n)
        manual.run_all()
        clock.advance(1)
    other.submit()
    manual.run_all()
    assert other.submit() is not None
    [claim] = manual.worker().claim()
    clock.advance(60)
    manual.orchestrate()
    groups = hf.statistics.failures()
    seen = [(group.job, group.failure_type, group.message, group.runs) for group in groups]
    assert seen[0] == ("work", "ERROR", "ValueError: no document doc--#", 3)
    assert ("other", "ERROR", "KeyError: 'x'", 1) in seen
    assert ("other", "TIMED_OUT") in [one[:2] for one in seen]
    assert (groups[0].first_at, groups[0].last_at) == (first, first + timedelta(seconds=2))
    assert groups[0].example == last.id
    assert len(hf.statistics.failures(limit=1)) == 1
    assert claim.lease.run_id in {group.example for group in groups}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("run 17 of 20 failed", "run 3 of 4 failed"),
        ("no row 550e8400-e29b-41d4-a716-446655440000", "no row 123e4567-e89b-12d3-a456-426614174000"),
        ("<Thing at 0x7f00aa>", "<Thing at 0x10>"),
        ("run 01kdvdna00031djkce3zfcgse6 is gone", "run 01kdvdna0003zzzzze3zfcgse6 is gone"),
        ("took 1.5 s", "took 12,000.25 s"),
        ("sha deadbeef0123456789ab", "sha 0123456789abdeadbeef"),
    ],
)
def test_numbers_and_ids_in_errors_are_replaced_by_placeholders(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


def test_different_errors_form_different_groups() -> None:
    assert normalise("no document") != normalise("no file")
    assert normalise("Traceback …\n  File x\nValueError: a") == "ValueError: a"
    assert normalise("") == ""
    assert len(normalise("x" * 100_000)) <= 300


def test_totals_are_by_job_and_queue_and_queues_show_their_refusals(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any
) -> None:
    work.submit(n=1)
    work.submit(n=-1)
    clock.advance(3)
    manual.run_all()
    clock.advance(20)
    manual.count_ended()
    [totals] = hf.statistics.jobs()
    assert (totals.job, totals.queue, totals.runs, totals.succeeded, totals.failed) == ("work", "default", 2, 1, 1)
    assert totals.waited.mean == pytest.approx(3)
    hf.queues.limit("default", max_queued=5)
    hf.store.counters.add("queue_rejected", "gone")
    hf.store.counters.flush(at_once=True)
    work.submit(n=1)
    found = {queue.name: queue for queue in hf.queues.list()}
    assert (found["default"].ready, found["default"].max_queued, found["default"].rejected) == (1, 5, 0)
    assert found["gone"].rejected == 1
    counters = {(one.name, one.label): one.value for one in hf.statistics.counters()}
    assert counters["queue_rejected", "gone"] == 1
    assert counters["lease_lost", ""] == 0


def test_a_queue_is_listed_while_a_worker_serves_it_or_it_has_settings(hf: Holdfast, manual: Manual, work: Any) -> None:
    manual.worker(queues=["served"]).register()
    hf.queues.pause("held")
    hf.queues.limit("bounded", max_queued=3)
    assert [queue.name for queue in hf.queues.list()] == ["bounded", "held", "served"]
    hf.queues.resume("held")
    hf.queues.limit("bounded", max_queued=None)
    assert [queue.name for queue in hf.queues.list()] == ["served"]


def test_readiness_follows_the_database_and_the_workers_of_this_process(
    hf: Holdfast, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hf.statistics.health() == []
    hf.polls["host:1:worker:00"] = clock.elapsed()
    assert hf.statistics.health() == []
    clock.advance(6)
    assert hf.statistics.health() == ["worker host:1:worker:00 has not polled for 6.0 s"]
    del hf.polls["host:1:worker:00"]
    assert hf.statistics.health() == []


def test_a_worker_reports_its_last_poll_until_it_has_stopped(live: Holdfast) -> None:
    with live.worker() as worker:
        assert worker.id in live.polls
        assert live.statistics.health() == []
    assert live.polls == {}
