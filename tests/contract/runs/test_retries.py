"""Retries: a failed attempt is retried as its policy says; a job may set the delay or give up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, GiveUp, Holdfast, InvalidPolicy, Retry, Snooze, TryAgain
from holdfast.testing import FakeClock, Manual

MINUTE = timedelta(minutes=1)


@pytest.mark.contract("X4", "S3")
def test_a_failing_run_is_attempted_max_attempts_times_and_then_fails(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    attempt: list[int] = []

    @hf.job(name="work", max_attempts=5, retry=Retry(delay=MINUTE, factor=1, jitter=0))
    def work(ctx: Context) -> None:
        attempt.append(ctx.run.attempt)
        raise ConnectionError(f"try {ctx.run.attempt}")

    run = work.submit()
    for number in range(1, 6):
        manual.run_all()
        assert run.refresh().snapshot.attempt == number
        if number < 5:
            assert run.state == "queued"
            assert f"try {number}" in str(run.snapshot.reason)
            clock.advance(59)
            assert manual.run_all() == 0
            clock.advance(1)

    assert attempt == [1, 2, 3, 4, 5]
    assert (run.state, run.snapshot.failure_type) == ("failed", "ERROR")
    assert "try 5" in str(run.snapshot.error)
    assert [event.kind for event in run.timeline()].count("RUN_RETRIED") == 4
    assert hf.verify() == []


@pytest.mark.contract("P8")
def test_a_run_has_one_attempt_by_default(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work() -> None:
        raise ValueError

    run = work.submit()
    manual.run_all()
    assert (run.refresh().state, run.snapshot.attempt) == ("failed", 1)


@pytest.mark.contract("X4")
def test_the_retry_delay_grows_by_the_factor_up_to_its_limit(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    retry = Retry(delay=timedelta(seconds=10), factor=3, max_delay=timedelta(seconds=100), jitter=0)

    @hf.job(name="work", max_attempts=6, retry=retry)
    def work() -> None:
        raise ValueError

    run = work.submit()
    waits: list[float] = []
    for _ in range(5):
        manual.run_all()
        due_at = run.refresh().snapshot.due_at
        assert due_at is not None
        waits.append((due_at - clock.now()).total_seconds())
        clock.advance(waits[-1])
    assert waits == [10, 30, 90, 100, 100]


@pytest.mark.contract("X4")
def test_jitter_spreads_the_retry_delay(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="work", max_attempts=2, retry=Retry(delay=timedelta(seconds=100), jitter=0.5))
    def work() -> None:
        raise ValueError

    runs = work.submit_many([{}] * 20)
    manual.run_all()
    waits = [(run.snapshot.due_at - clock.now()).total_seconds() for run in runs if run.snapshot.due_at]

    assert len(waits) == 20
    assert len(set(waits)) > 10
    assert all(50 <= wait <= 150 for wait in waits)


@pytest.mark.contract("X4")
def test_try_again_sets_the_delay_and_counts_as_an_attempt(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    """For example the Retry-After of an HTTP 429; TryAgain retries even if the policy would not retry the error."""

    @hf.job(name="work", max_attempts=3, retry=Retry(on=(KeyError,), delay=timedelta(seconds=1)))
    def work(ctx: Context) -> str:
        if ctx.run.attempt < 3:
            raise TryAgain("429", after=timedelta(hours=2))
        return "done"

    run = work.submit()
    manual.run_all()
    assert run.refresh().snapshot.due_at == clock.now() + timedelta(hours=2)
    for _ in range(2):
        clock.advance(timedelta(hours=2))
        manual.run_all()
    assert (run.result(timeout=1), run.snapshot.attempt) == ("done", 3)

    @hf.job(name="never", max_attempts=2)
    def never() -> None:
        raise TryAgain("429", after=timedelta(seconds=1))

    failing = never.submit()
    for _ in range(3):
        manual.run_all()
        clock.advance(5)
    assert (failing.refresh().state, failing.snapshot.attempt) == ("failed", 2)


@pytest.mark.contract("X4")
def test_a_snoozed_run_uses_up_no_attempt(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    away = True

    @hf.job(name="call", max_attempts=1, on_shutdown="release")
    def call() -> str:
        if away:
            raise Snooze("the service is known to be away", after=60)
        return "called"

    run = call.submit()
    for _ in range(3):
        manual.run_all()
        snapshot = hf.snapshot(run.id)
        assert (snapshot.state, snapshot.attempt) == ("queued", 0)
        assert "known to be away" in run.why().reasons[0]
        clock.advance(61)
    away = False
    manual.run_all()
    assert run.result(timeout=1) == "called"
    assert hf.snapshot(run.id).attempt == 1
    kinds = [event.kind for event in hf.timeline(run.id)]
    assert kinds.count("RUN_SNOOZED") == 3
    assert kinds.count("RUN_STARTED") == 4


def test_the_run_of_a_slot_cannot_be_snoozed(hf: Holdfast, manual: Manual) -> None:
    """The run of a slot may start only once."""

    @hf.schedule(every=timedelta(days=1), name="call")
    def call() -> None:
        raise Snooze("later", after=60)

    manual.worker().register()
    run = hf.schedules.trigger("call", scheduled_for=hf.clock.now())
    manual.run_all()
    assert hf.snapshot(run.id).state == "failed"


def test_a_job_can_give_up_with_its_own_failure_type(hf: Holdfast, manual: Manual) -> None:
    """Neither the step nor the run is tried again, whatever their policies allow."""
    tried: list[str] = []

    @hf.job(name="work", max_attempts=3, retry=Retry(step_attempts=3, on=(Exception,)))
    def work(ctx: Context) -> None:
        def read() -> None:
            tried.append("read")
            raise GiveUp("it needs a password", failure_type="ENCRYPTED")

        ctx.step("read", read)

    run = work.submit()
    manual.run_all()
    snapshot = run.refresh().snapshot
    assert (snapshot.state, snapshot.failure_type, snapshot.attempt, tried) == ("failed", "ENCRYPTED", 1, ["read"])
    assert snapshot.error == "it needs a password"
    assert "STEP_RETRIED" not in [event.kind for event in run.timeline()]


@pytest.mark.parametrize("failure_type", ["", "encrypted", "A" * 61, "A B", None, "TIMED_OUT", "SKIPPED"])
def test_an_invalid_or_reserved_failure_type_is_refused(failure_type: str) -> None:
    with pytest.raises(InvalidPolicy, match="failure_type"):
        GiveUp("no", failure_type=failure_type)


@pytest.mark.contract("X4")
@pytest.mark.parametrize(
    ("error", "retried"),
    [(ConnectionError, True), (ConnectionResetError, True), (ConnectionRefusedError, False), (ValueError, False)],
)
def test_on_and_never_on_select_the_errors_that_are_retried(
    hf: Holdfast, manual: Manual, error: type[Exception], retried: bool
) -> None:
    @hf.job(name="work", max_attempts=2, retry=Retry(on=(ConnectionError,), never_on=(ConnectionRefusedError,)))
    def work() -> None:
        raise error

    run = work.submit()
    manual.run_all()
    assert run.refresh().state == ("queued" if retried else "failed")


@pytest.mark.contract("X4")
def test_a_submission_can_have_its_own_policy_and_keeps_it(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="work", max_attempts=1)
    def work() -> None:
        raise ValueError

    patient, hasty = work.using(max_attempts=3, retry=Retry(delay=MINUTE, jitter=0)).submit(), work.submit()
    manual.run_all()

    assert (patient.refresh().state, hasty.refresh().state) == ("queued", "failed")
    assert patient.snapshot.due_at == clock.now() + MINUTE
    assert patient.snapshot.policy.max_attempts == 3


def test_delays_are_seconds_or_timedeltas_and_errors_are_one_or_several(
    hf: Holdfast, manual: Manual, clock: Any
) -> None:
    assert Retry(delay=2, max_delay=5, on=ValueError, never_on=[KeyError]) == Retry(
        delay=timedelta(seconds=2), max_delay=timedelta(seconds=5), on=(ValueError,), never_on=(KeyError,)
    )

    @hf.job(name="later", max_attempts=2)
    def later(ctx: Context) -> int:
        if ctx.run.claim == 1:
            raise TryAgain("busy", after=30)
        return ctx.run.claim

    run = later.submit()
    manual.run_all()
    assert (run.refresh().snapshot.due_at or clock.now()) - clock.now() == timedelta(seconds=30)
    clock.advance(30)
    manual.run_all()
    assert run.result(timeout=1) == 2
