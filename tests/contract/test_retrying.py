"""Retrying: a failed attempt is tried again as its policy says; a job may say when, or give up."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Context, GiveUp, Holdfast, InvalidPolicy, Retry, TryAgain
from holdfast.testing import FakeClock, Manual

MINUTE = timedelta(minutes=1)


@pytest.mark.contract("X4", "S3")
def test_a_failing_run_is_tried_max_attempts_times_and_then_fails(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    tries: list[int] = []

    @hf.job(name="work", max_attempts=5, retry=Retry(delay=MINUTE, factor=1, jitter=0))
    def work(ctx: Context) -> None:
        tries.append(ctx.run.tries)
        raise ConnectionError(f"try {ctx.run.tries}")

    run = work.submit()
    for number in range(1, 6):
        manual.run_all()
        assert run.refresh().snapshot.tries == number
        if number < 5:
            assert run.state == "queued"
            assert f"try {number}" in str(run.snapshot.because)
            clock.advance(59)
            assert manual.run_all() == 0
            clock.advance(1)

    assert tries == [1, 2, 3, 4, 5]
    assert (run.state, run.snapshot.failure_type) == ("failed", "ERROR")
    assert "try 5" in str(run.snapshot.error)
    assert [event.kind for event in run.story()].count("RUN_RETRIED") == 4
    assert hf.verify() == []


@pytest.mark.contract("P8")
def test_a_run_has_one_attempt_unless_it_asks_for_more(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work() -> None:
        raise ValueError

    run = work.submit()
    manual.run_all()
    assert (run.refresh().state, run.snapshot.tries) == ("failed", 1)


@pytest.mark.contract("X4")
def test_the_wait_grows_by_the_factor_up_to_its_limit(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
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
def test_jitter_spreads_the_wait(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
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
def test_try_again_says_when_and_counts_as_an_attempt(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    """An HTTP 429 passes its Retry-After on; TryAgain retries even where the policy would not."""

    @hf.job(name="work", max_attempts=3, retry=Retry(on=(KeyError,), delay=timedelta(seconds=1)))
    def work(ctx: Context) -> str:
        if ctx.run.tries < 3:
            raise TryAgain("429", after=timedelta(hours=2))
        return "done"

    run = work.submit()
    manual.run_all()
    assert run.refresh().snapshot.due_at == clock.now() + timedelta(hours=2)
    for _ in range(2):
        clock.advance(timedelta(hours=2))
        manual.run_all()
    assert (run.result(timeout=1), run.snapshot.tries) == ("done", 3)

    @hf.job(name="never", max_attempts=2)
    def never() -> None:
        raise TryAgain("429", after=timedelta(seconds=1))

    failing = never.submit()
    for _ in range(3):
        manual.run_all()
        clock.advance(5)
    assert (failing.refresh().state, failing.snapshot.tries) == ("failed", 2)


@pytest.mark.contract("X4")
def test_what_has_not_tried_anything_is_put_off_and_uses_up_no_attempt(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    away = True

    @hf.job(name="call", max_attempts=1, on_shutdown="hand_back")
    def call() -> str:
        if away:
            raise TryAgain("the service is known to be away", after=60, counts=False)
        return "called"

    run = call.submit()
    for _ in range(3):
        manual.run_all()
        snapshot = hf.snapshot(run.id)
        assert (snapshot.state, snapshot.tries) == ("queued", 0)
        assert "known to be away" in run.why().reasons[0]
        clock.advance(61)
    away = False
    manual.run_all()
    assert run.result(timeout=1) == "called"
    assert hf.snapshot(run.id).tries == 1
    kinds = [event.kind for event in hf.story(run.id)]
    assert kinds.count("RUN_PUT_OFF") == 3
    assert kinds.count("RUN_STARTED") == 4


def test_a_slots_run_is_not_put_off(hf: Holdfast, manual: Manual) -> None:
    """It has one start, whatever it says."""

    @hf.schedule(every=timedelta(days=1), name="call")
    def call() -> None:
        raise TryAgain("later", after=60, counts=False)

    manual.worker().register()
    run = hf.schedules.trigger("call", scheduled_for=hf.clock.now())
    manual.run_all()
    assert hf.snapshot(run.id).state == "failed"


def test_a_job_gives_up_with_a_failure_type_of_its_own(hf: Holdfast, manual: Manual) -> None:
    """Neither the step nor the run is tried again, whatever their policies allow."""
    tried: list[str] = []

    @hf.job(name="work", max_attempts=3, retry=Retry(steps=3, on=(Exception,)))
    def work(ctx: Context) -> None:
        def read() -> None:
            tried.append("read")
            raise GiveUp("it needs a password", failure_type="ENCRYPTED")

        ctx.step("read", read)

    run = work.submit()
    manual.run_all()
    snapshot = run.refresh().snapshot
    assert (snapshot.state, snapshot.failure_type, snapshot.tries, tried) == ("failed", "ENCRYPTED", 1, ["read"])
    assert snapshot.error == "it needs a password"
    assert "STEP_RETRIED" not in [event.kind for event in run.story()]


@pytest.mark.parametrize("failure_type", ["", "encrypted", "A" * 61, "A B", None, "TIMED_OUT", "SKIPPED"])
def test_a_failure_type_is_a_name_and_none_of_the_engines(failure_type: str) -> None:
    with pytest.raises(InvalidPolicy, match="failure type"):
        GiveUp("no", failure_type=failure_type)


@pytest.mark.contract("X4")
@pytest.mark.parametrize(
    ("error", "retried"),
    [(ConnectionError, True), (ConnectionResetError, True), (ConnectionRefusedError, False), (ValueError, False)],
)
def test_on_and_never_on_say_which_errors_are_tried_again(
    hf: Holdfast, manual: Manual, error: type[Exception], retried: bool
) -> None:
    @hf.job(name="work", max_attempts=2, retry=Retry(on=(ConnectionError,), never_on=(ConnectionRefusedError,)))
    def work() -> None:
        raise error

    run = work.submit()
    manual.run_all()
    assert run.refresh().state == ("queued" if retried else "failed")


@pytest.mark.contract("X4")
def test_a_submission_may_have_its_own_policy_and_keeps_it(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="work", max_attempts=1)
    def work() -> None:
        raise ValueError

    patient, hasty = work.using(max_attempts=3, retry=Retry(delay=MINUTE, jitter=0)).submit(), work.submit()
    manual.run_all()

    assert (patient.refresh().state, hasty.refresh().state) == ("queued", "failed")
    assert patient.snapshot.due_at == clock.now() + MINUTE
    assert patient.snapshot.policy.max_attempts == 3
