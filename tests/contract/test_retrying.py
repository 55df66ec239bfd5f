"""Retrying: failed attempts, failed steps, and what is remembered between them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Context, DuplicateStep, GiveUp, Holdfast, InvalidPolicy, Retry, TryAgain
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.conftest import Database

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

    @hf.job(name="call", on_shutdown="fail")
    def call() -> None:
        raise TryAgain("later", after=60, counts=False)

    run = call.submit()
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


@pytest.mark.contract("P6")
def test_a_failing_step_is_tried_twice_in_all_inside_the_same_run(
    hf: Holdfast, manual: Manual, database: Database
) -> None:
    calls: list[str] = []

    def flaky() -> str:
        calls.append("flaky")
        if len(calls) == 1:
            raise ConnectionError("once")
        return "ok"

    @hf.job(name="work")
    def work(ctx: Context) -> str:
        return ctx.step("extract", flaky)

    run = work.submit()
    manual.run_all()

    assert run.result(timeout=1) == "ok"
    assert calls == ["flaky", "flaky"]
    assert database.count("runs") == 1
    assert run.snapshot.attempt == 1
    retried = [event for event in run.story() if event.kind == "STEP_RETRIED"]
    assert [(event.data["step"], event.data["try"], event.data["error"]) for event in retried] == [
        ("extract", 1, "ConnectionError: once")
    ]


@pytest.mark.contract("P6")
def test_a_step_that_fails_twice_fails_its_run(hf: Holdfast, manual: Manual, database: Database) -> None:
    calls: list[int] = []

    def broken() -> None:
        calls.append(1)
        raise ValueError("always")

    @hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.step("extract", broken)

    run = work.submit()
    manual.run_all()

    assert len(calls) == 2
    assert run.refresh().state == "failed"
    assert [event.kind for event in run.story()].count("STEP_RETRIED") == 1
    assert database.count("steps") == 0
    assert database.count("runs") == 1


@pytest.mark.contract("P6")
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_how_often_a_step_is_tried_is_a_policy(hf: Holdfast, manual: Manual, steps: int) -> None:
    calls: list[int] = []

    def broken() -> None:
        calls.append(1)
        raise ValueError

    @hf.job(name="work", retry=Retry(steps=steps))
    def work(ctx: Context) -> None:
        ctx.step("extract", broken)

    work.submit()
    manual.run_all()
    assert len(calls) == steps


@pytest.mark.contract("P6")
def test_a_step_is_not_tried_again_for_an_error_that_never_retries(hf: Holdfast, manual: Manual) -> None:
    calls: list[int] = []

    def broken() -> None:
        calls.append(1)
        raise PermissionError

    @hf.job(name="work", retry=Retry(never_on=(PermissionError,)))
    def work(ctx: Context) -> None:
        ctx.step("extract", broken)

    work.submit()
    manual.run_all()
    assert len(calls) == 1


@pytest.mark.contract("P6", "S3")
@pytest.mark.parametrize("lost_by", ["an error", "a crash", "a hand-back"])
def test_a_finished_step_is_remembered_and_not_executed_again(
    hf: Holdfast, manual: Manual, clock: FakeClock, lost_by: str
) -> None:
    done: list[str] = []

    def extract(what: str) -> dict[str, Any]:
        done.append(what)
        return {"text": what, "at": [1, 2]}

    @hf.job(name="work", max_attempts=2)
    def work(ctx: Context) -> Any:
        first = ctx.step("one", extract, "a")
        second = ctx.step("two", extract, what="b")
        if ctx.attempt == 1:
            raise ValueError("between the steps and the end")
        return [first, second, ctx.step("three", extract, "c")]

    run = work.submit()
    if lost_by == "an error":
        manual.run_all()
    else:
        _work_and_vanish(hf, manual, clock, lost_by)
    assert done == ["a", "b"]
    clock.advance(600)
    manual.run_all()

    assert done == ["a", "b", "c"]
    assert run.result(timeout=1) == [{"text": what, "at": [1, 2]} for what in "abc"]
    assert hf.verify() == []


def _work_and_vanish(hf: Holdfast, manual: Manual, clock: FakeClock, how: str) -> None:
    """Do a run's work up to its end, but never write the end."""
    from holdfast.outcomes import HandBack

    worker = manual.worker("doomed")
    [claim] = worker.claim()
    finish = worker.finish
    worker.finish = lambda claim, outcome=None: None  # type: ignore[method-assign]
    worker.work(claim)
    if how == "a hand-back":
        finish(claim, HandBack("its worker shuts down"))
    else:
        clock.advance(2 * hf.settings.lease)
        manual.orchestrate()


@pytest.mark.contract("P6")
def test_a_steps_value_has_been_through_json_the_first_time_too(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    seen: list[Any] = []

    def typed() -> tuple[int, str]:
        return (1, "a")

    def untyped() -> Any:
        return (1, "a")

    @hf.job(name="work", max_attempts=2)
    def work(ctx: Context) -> None:
        seen.append((ctx.step("typed", typed), ctx.step("untyped", untyped)))
        if ctx.attempt == 1:
            raise ValueError

    work.submit()
    manual.run_all()
    clock.advance(60)
    manual.run_all()
    assert seen == [((1, "a"), [1, "a"])] * 2


@pytest.mark.contract("P6", "S4")
def test_a_step_name_is_used_once(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.step("one", lambda: 1)
        ctx.step("one", lambda: 2)

    run = work.submit()
    manual.run_all()

    assert run.refresh().state == "failed"
    assert DuplicateStep.__name__ in str(run.snapshot.error)
    assert DuplicateStep.code == "duplicate_step"


@pytest.mark.contract("P6", "S4")
def test_a_steps_result_that_can_not_be_stored_fails_the_run(hf: Holdfast, manual: Manual, database: Database) -> None:
    @hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.step("one", object)

    run = work.submit()
    manual.run_all()

    assert run.refresh().state == "failed"
    assert "NotSerialisable" in str(run.snapshot.error)
    assert database.count("steps") == 0


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"delay": timedelta(seconds=-1)},
        {"max_delay": timedelta(seconds=-1)},
        {"factor": 0.5},
        {"jitter": 2},
        {"jitter": -0.1},
    ],
    ids=repr,
)
def test_a_retry_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidPolicy):
        Retry(**wrong)


@pytest.mark.contract("S3")
def test_a_queued_run_whose_arguments_no_longer_fit_fails_with_a_reason(
    hf: Holdfast, url: str, clock: FakeClock
) -> None:
    @hf.job(name="work", max_attempts=5)
    def work(name: str) -> None: ...

    run, other = work.submit("a"), work.submit("b")
    with Holdfast(url, clock=clock) as newer:

        @newer.job(name="work", max_attempts=5)
        def changed(first: str, last: str) -> None: ...

        Manual(newer).run_all()

        for one in (run, other):
            assert (one.refresh().state, one.snapshot.failure_type) == ("failed", "ARGUMENTS_CHANGED")
            assert "first" in str(one.snapshot.error)


@pytest.mark.contract("S3")
def test_a_queued_run_whose_arguments_no_longer_fit_is_migrated_by_a_hook(
    hf: Holdfast, url: str, clock: FakeClock
) -> None:
    @hf.job(name="work")
    def work(name: str) -> None: ...

    run, odd = work.submit("Ada Lovelace"), work.submit("Plato")
    with Holdfast(url, clock=clock) as newer:

        @newer.job(name="work")
        def changed(first: str, last: str) -> str:
            return f"{last}, {first}"

        @changed.on_changed_arguments
        def migrate(old: dict[str, Any]) -> dict[str, Any]:
            first, last = old["name"].split()
            return {"first": first, "last": last}

        fitting = changed.submit("Grace", "Hopper")
        Manual(newer).run_all()

        assert newer.get(run.id).result(timeout=1) == "Lovelace, Ada"
        assert fitting.result(timeout=1) == "Hopper, Grace"
        # A hook that fails is a reason too; it stops no worker.
        assert (odd.refresh().state, odd.snapshot.failure_type) == ("failed", "ARGUMENTS_CHANGED")
