"""Rate limits: no period has more starts than the rate, with any number of workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fixtures import Database

from holdfast import Holdfast, InvalidPolicy
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.outcomes import RetryLater, Succeeded
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual
from holdfast.values.rates import parse_rate

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def most_in_a_window(starts: Sequence[datetime], period: timedelta) -> int:
    """The largest number of starts in a half-open window of one period."""
    return max((sum(start <= other < start + period for other in starts) for start in starts), default=0)


@pytest.fixture
def job(hf: Holdfast) -> Any:
    return hf.job(name="mail", rate="3/min", max_attempts=9)(lambda: None)


def work(manual: Manual, *, limit: int = 100, names: Sequence[str] = ("a", "b")) -> list[ClaimedRun]:
    """Let two workers claim and finish all runs that may start; return their claims."""
    found = []
    manual.orchestrate()
    for name in [*names, *names]:  # twice: a run delayed by its rate may free its key for another run
        worker = manual.worker(name)
        while claims := worker.claim(limit=limit):
            for claim in claims:
                worker.finish(claim, Succeeded())
            found += claims
            manual.orchestrate()
        manual.orchestrate()
    return found


def test_a_rate_limits_the_starts_in_a_period_in_order_of_submission(
    job: Any, manual: Manual, clock: FakeClock
) -> None:
    runs = job.submit_many([{}] * 8)
    started: list[list[str]] = []
    for _ in range(4):
        started.append([claim.lease.run_id for claim in work(manual)])
        clock.advance(60)
    assert started == [[run.id for run in runs[first : first + 3]] for first in (0, 3, 6)] + [[]]


def test_a_run_delayed_by_its_rate_waits_for_its_turn_and_why_explains_it(
    job: Any, hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    runs = job.submit_many([{}] * 7)
    start = clock.now()
    work(manual)
    assert [hf.snapshot(run.id).due_at for run in runs[3:]] == [start + MINUTE] * 3 + [start + 2 * MINUTE]
    reason = hf.why(runs[6].id).reasons[0]
    assert reason == f"its start is reserved for {start + 2 * MINUTE:%Y-%m-%d %H:%M:%S} UTC by rate 3/min of mail"
    assert hf.snapshot(runs[6].id).claim == 0
    assert [event.kind for event in hf.timeline(runs[6].id)] == ["RUN_QUEUED"]


def test_a_backlog_after_an_outage_starts_no_faster_than_its_rate(
    job: Any, hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    runs = job.submit_many([{}] * 20)
    work(manual)
    clock.advance(3600)  # no worker for an hour: all of them are due now
    start = clock.now()
    assert [claim.lease.run_id for claim in work(manual)] == [run.id for run in runs[3:6]]
    waiting = [(due - start) / MINUTE for run in runs[6:] if (due := hf.snapshot(run.id).due_at)]
    assert waiting == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5]


def test_retries_and_takeovers_count_as_starts(job: Any, hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    run = job.submit()
    starts = []
    for number in range(9):
        manual.orchestrate()
        for claim in manual.worker("a").claim():
            starts.append(claim.lease.started_at)
            if number % 2:
                manual.worker("a").finish(claim, RetryLater("again", SECOND))
            else:
                clock.advance(hf.settings.lease * 2)
                manual.orchestrate()
        clock.advance(2)
    assert len(starts) > 3
    assert most_in_a_window(starts, MINUTE) == 3
    assert hf.snapshot(run.id).state == "queued"


def test_a_run_delayed_by_its_rate_frees_its_key(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    rated = hf.job(name="rated", rate="1/min", key="k")(lambda k: None)
    free = hf.job(name="free", key="k")(lambda k: None)
    rated.submit(k="a")
    work(manual)
    held_up = rated.submit(k="a")
    other = free.submit(k="a")
    assert [claim.lease.run_id for claim in work(manual)] == [other.id]
    clock.advance(60)
    assert [claim.lease.run_id for claim in work(manual)] == [held_up.id]
    assert hf.verify() == []


def test_each_rate_key_has_its_own_rate_across_jobs(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    one = hf.job(name="one", rate="1/min", rate_key="tenant")(lambda tenant: None)
    two = hf.job(name="two", rate="1/min", rate_key="tenant")(lambda tenant: None)
    first = [one.submit(tenant="a"), one.submit(tenant="b"), two.submit(tenant="c")]
    later = [two.submit(tenant="a"), one.submit(tenant="b")]
    assert {claim.lease.run_id for claim in work(manual)} == {run.id for run in first}
    clock.advance(60)
    assert {claim.lease.run_id for claim in work(manual)} == {run.id for run in later}


def test_jobs_with_the_same_rate_name_share_a_rate(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    one = hf.job(name="one", rate="1/min", rate_name="mail server")(lambda: None)
    two = hf.job(name="two", rate="1/min", rate_name="mail server")(lambda: None)
    first, later = one.submit(), two.submit()
    assert [claim.lease.run_id for claim in work(manual)] == [first.id]
    clock.advance(60)
    assert [claim.lease.run_id for claim in work(manual)] == [later.id]


def test_a_rate_can_be_set_for_a_single_submission(hf: Holdfast, manual: Manual) -> None:
    job = hf.job(name="plain")(lambda: None)
    slow = job.using(rate="1/hour")
    slow.submit_many([{}, {}])
    job.submit_many([{}, {}])
    assert len(work(manual)) == 3


def test_runs_of_a_claimed_batch_are_checked_one_by_one(hf: Holdfast, manual: Manual) -> None:
    slow = hf.job(name="slow", rate="1/min")(lambda: None)
    fast = hf.job(name="fast")(lambda: None)
    slow.submit_many([{}] * 3)
    fast.submit_many([{}] * 3)
    assert sorted(claim.lease.entry.job for claim in manual.worker("a").claim(limit=100)) == ["fast"] * 3 + ["slow"]


def test_a_run_delayed_by_its_rate_does_not_delay_the_others(hf: Holdfast, manual: Manual) -> None:
    slow = hf.job(name="slow", rate="1/min")(lambda: None)
    fast = hf.job(name="fast")(lambda: None)
    slow.submit_many([{}] * 3)
    fast.submit_many([{}] * 3)
    assert manual.run_all() == 4


def test_a_claim_that_returned_fewer_runs_notifies_for_the_rest(hf: Holdfast, manual: Manual) -> None:
    slow = hf.job(name="slow", rate="1/min")(lambda: None)
    slow.submit_many([{}] * 3)
    notified: set[str] = set()
    hf.notifier.listen(lambda names, ended: notified.update(names))
    assert len(manual.worker("a").claim(limit=2)) == 1
    assert "default" in notified


def test_a_lost_race_for_a_permit_uses_up_no_start(hf: Holdfast, manual: Manual, database: Database) -> None:
    """A start is recorded only for a run that really starts."""
    hf.queue("q", concurrency=1)
    job = hf.job(name="both", queue="q", rate="5/min")(lambda: None)
    job.submit_many([{}] * 2)
    [claim] = manual.worker("a", queues=["q"]).claim(limit=5)
    assert manual.worker("b", queues=["q"]).claim(limit=5) == []
    assert database.all("select count(*) from holdfast_rates where number > 0 and started_at is not null") == [(1,)]
    manual.worker("a", queues=["q"]).finish(claim)
    assert len(manual.worker("b", queues=["q"]).claim(limit=5)) == 1


def test_two_live_workers_keep_to_a_rate(live: Holdfast) -> None:
    job = live.job(name="fast", rate="10/s")(lambda: None)
    runs = job.submit_many([{}] * 30)
    with live.worker(concurrency=4), live.worker(concurrency=4):
        for run in runs:
            run.result(timeout=60)
    starts = sorted(at for run in runs if (at := live.snapshot(run.id).started_at))
    assert len(starts) == 30
    assert most_in_a_window(starts, SECOND) <= 10
    assert live.verify() == []


@pytest.mark.timeout(300)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    count=st.integers(1, 4),
    moves=st.lists(
        st.one_of(
            st.tuples(st.just("submit"), st.integers(1, 6)),
            st.tuples(st.just("wait"), st.integers(1, 95)),
            st.tuples(st.just("claim"), st.integers(1, 5)),
            st.tuples(st.just("cancel"), st.integers(0, 20)),
        ),
        max_size=40,
    ),
)
def test_in_any_order_of_events_no_period_has_too_many_starts_and_every_run_starts(
    tmp_path_factory: pytest.TempPathFactory, count: int, moves: list[tuple[str, int]]
) -> None:
    """Compared with a simple model: a list of starts, and the order of submission."""
    folder: Path = tmp_path_factory.mktemp("rates")
    clock = FakeClock()
    with Holdfast(f"sqlite:///{folder / 'work.db'}", clock=clock, ids=Ids(seed=1), synchronous="normal") as hf:
        job = hf.job(name="mail", rate=f"{count}/min")(lambda: None)
        manual = Manual(hf)
        submitted: list[str] = []
        cancelled: set[str] = set()
        started: list[tuple[datetime, str]] = []

        def claim(limit: int) -> None:
            manual.orchestrate()
            for one in manual.worker("w").claim(limit=limit):
                started.append((one.lease.started_at, one.lease.run_id))
                manual.worker("w").finish(one)

        for move, number in moves:
            match move:
                case "submit":
                    submitted += [run.id for run in job.submit_many([{}] * number)]
                case "wait":
                    clock.advance(number)
                case "claim":
                    claim(number)
                case "cancel":
                    done = {run_id for _, run_id in started} | cancelled
                    if left := [run_id for run_id in submitted if run_id not in done]:
                        hf.cancel(left[number % len(left)])
                        cancelled.add(left[number % len(left)])
        for _ in range(2 * len(submitted) + 2):  # each period has a start, even if cancelled runs had reserved turns
            claim(100)
            clock.advance(61)
        starts = [at for at, _ in started]
        assert most_in_a_window(starts, MINUTE) <= count
        assert {run_id for _, run_id in started} == set(submitted) - cancelled
        if not cancelled:
            assert [run_id for _, run_id in started] == sorted(submitted)


@pytest.mark.parametrize(
    ("text", "count", "seconds"),
    [
        *(("10/min", 10, 60), ("1/s", 1, 1), ("5 / sec", 5, 1), ("100/30s", 100, 30), ("3/day", 3, 86400)),
        *(("250/min", 83, 20), ("1000/hour", 100, 360), ("7/2hour", 7, 7200)),
    ],
)
def test_a_rate_is_written_in_ordinary_units(text: str, count: int, seconds: float) -> None:
    assert (parse_rate(text).count, parse_rate(text).period) == (count, timedelta(seconds=seconds))


@pytest.mark.contract("S4")
def test_a_rate_key_names_a_parameter(hf: Holdfast) -> None:
    with pytest.raises(InvalidPolicy, match="rate_key"):
        hf.job(name="x", rate="1/s", rate_key="nobody")(lambda tenant: None)


def test_a_lowered_rate_applies_from_then_on(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    job = hf.job(name="mail", rate="100/min")(lambda: None)
    job.submit_many([{}] * 150)
    for _ in range(3):
        work(manual)
        clock.advance(60)
    slow = job.using(rate="1/min").submit_many([{}] * 3)
    started = []
    for _ in slow:
        started += [claim.lease.run_id for claim in work(manual)]
        clock.advance(60)
    assert started == [run.id for run in slow]


def test_starts_under_a_higher_rate_count_for_a_lower_one(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    job = hf.job(name="mail", rate="6/min")(lambda: None)
    for _ in range(6):
        job.submit()
        work(manual)
        clock.advance(10)
    job.using(rate="3/min").submit_many([{}] * 6)
    starts: list[int] = []
    for _ in range(10):
        starts.append(len(work(manual)))
        clock.advance(10)
    assert starts == [0, 0, 0, 1, 1, 1, 0, 0, 0, 1], "at first there are three starts in the last minute"


def test_each_run_of_a_batch_keeps_to_its_own_rate(hf: Holdfast, manual: Manual) -> None:
    """Queued runs keep the rate with which they were submitted; newer code may declare another."""
    job = hf.job(name="mail", rate="2/min")(lambda: None)
    old = job.submit_many([{}] * 4)
    new = job.using(rate="5/min").submit_many([{}] * 4)
    started = {claim.lease.run_id for claim in work(manual)}
    assert started == {run.id for run in [*old[:2], *new[:3]]}


def test_a_clock_that_is_set_back_does_not_stop_a_rate(job: Any, manual: Manual, clock: FakeClock) -> None:
    clock.jump(timedelta(days=1))
    job.submit_many([{}] * 3)
    assert len(work(manual)) == 3
    clock.jump(timedelta(days=-1))
    later = job.submit_many([{}] * 3)
    assert work(manual) == []
    clock.advance(60)
    assert [claim.lease.run_id for claim in work(manual)] == [run.id for run in later]


def test_an_unused_rate_row_is_deleted(hf: Holdfast, manual: Manual, clock: FakeClock, database: Database) -> None:
    """Each value of a rate key has its own rows."""
    job = hf.job(name="sync", rate="2/min", rate_key="tenant")(lambda tenant: None)
    job.submit_many([{"tenant": str(number)} for number in range(60)])
    assert len(work(manual)) == 60
    clock.advance(86400)
    hf.prune()
    assert database.count("rates") == 180
    job.submit(tenant="7")
    work(manual)
    clock.advance(61)
    hf.prune()
    assert database.count("rates") == 3


def test_a_rate_row_is_kept_until_its_reserved_turns_have_passed(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    job = hf.job(name="mail", rate="1/day")(lambda: None)
    job.submit_many([{}] * 5)
    for _ in range(5):
        assert len(work(manual)) == 1
        clock.advance(86400)
        hf.prune()
        assert database.count("rates") == 2


def test_a_run_whose_rate_row_was_deleted_starts_in_its_turn(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    job = hf.job(name="mail", rate="1/min", queue="q")(lambda: None)
    early = job.submit_many([{}] * 3)
    claims = manual.worker("a", queues=["q"]).claim(limit=3)
    assert [claim.lease.run_id for claim in claims] == [early[0].id]
    manual.worker("a", queues=["q"]).finish(claims[0])
    hf.queues.pause("q")
    manual.orchestrate()
    clock.advance(timedelta(days=3))
    hf.prune()
    hf.queues.resume("q")
    late = job.submit_many([{}] * 2)
    started = []
    for _ in range(4):
        manual.orchestrate()
        for claim in manual.worker("a", queues=["q"]).claim(limit=9):
            started.append(claim.lease.run_id)
            manual.worker("a", queues=["q"]).finish(claim)
        clock.advance(60)
    assert started == [run.id for run in [*early[1:], *late]]


@pytest.mark.parametrize(
    ("written", "period"),
    [
        *(("10/" + unit, SECOND) for unit in ("s", "sec", "second")),
        *(("10/" + unit, MINUTE) for unit in ("m", "min", "minute")),
        *(("10/" + unit, 60 * MINUTE) for unit in ("h", "hour")),
        *(("10/" + unit, 24 * 60 * MINUTE) for unit in ("d", "day")),
        ("10/2minutes", 2 * MINUTE),
    ],
)
def test_a_period_may_be_spelled_in_several_ways(written: str, period: timedelta) -> None:
    assert (parse_rate(written).count, parse_rate(written).period) == (10, period)
