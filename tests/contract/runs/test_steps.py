"""Steps: a failed step is retried within its run, and a finished one is stored and not executed again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Context, DuplicateStep, Holdfast, Retry
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("P6")
def test_a_failing_step_is_tried_twice_within_the_same_run(hf: Holdfast, manual: Manual, database: Database) -> None:
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
    assert run.snapshot.claim == 1
    assert [event.kind for event in run.timeline()][2:] == [
        "STEP_STARTED",
        "STEP_RETRIED",
        "STEP_FINISHED",
        "RUN_SUCCEEDED",
    ]
    retried = [event for event in run.timeline() if event.kind == "STEP_RETRIED"]
    assert [(event.data["step"], event.data["try"], event.data["error"]) for event in retried] == [
        ("extract", 1, "ConnectionError: once")
    ]


@pytest.mark.contract("P11")
def test_the_start_of_a_step_is_recorded_once_even_if_the_step_is_retried(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    """A reader of the events sees it only once, even while the step is being retried."""
    seen: list[list[str]] = []

    def flaky() -> None:
        seen.append([event.kind for event in run.timeline()][2:])
        if len(seen) < 3:
            raise ConnectionError("twice")

    @hf.job(name="work", retry=Retry(step_attempts=3, delay=timedelta(0)))
    def work(ctx: Context) -> None:
        ctx.step("first", lambda: None)
        clock.advance(1)
        ctx.step("extract", flaky)

    run = work.submit()
    manual.run_all()

    done = ["STEP_STARTED", "STEP_FINISHED"]
    assert seen == [
        done,
        [*done, "STEP_STARTED", "STEP_RETRIED"],
        [*done, "STEP_STARTED", "STEP_RETRIED", "STEP_RETRIED"],
    ]
    kinds = [event.kind for event in run.timeline()][2:]
    assert kinds == [*seen[-1], "STEP_FINISHED", "RUN_SUCCEEDED"]


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
    assert [event.kind for event in run.timeline()][2:] == ["STEP_STARTED", "STEP_RETRIED", "RUN_FAILED"]
    assert database.count("steps") == 0
    assert database.count("runs") == 1


@pytest.mark.contract("P6")
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_the_number_of_step_attempts_is_a_policy(hf: Holdfast, manual: Manual, steps: int) -> None:
    calls: list[int] = []

    def broken() -> None:
        calls.append(1)
        raise ValueError

    @hf.job(name="work", retry=Retry(step_attempts=steps))
    def work(ctx: Context) -> None:
        ctx.step("extract", broken)

    work.submit()
    manual.run_all()
    assert len(calls) == steps


@pytest.mark.contract("P6")
def test_a_step_is_not_retried_for_an_error_in_never_on(hf: Holdfast, manual: Manual) -> None:
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
@pytest.mark.parametrize("lost_by", ["an error", "a crash", "a release"])
def test_a_finished_step_is_stored_and_not_executed_again(
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
        if ctx.run.claim == 1:
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
    """Execute a run without storing its outcome; then release it or let its lease expire."""
    from holdfast.runs.outcomes import Release

    worker = manual.worker("lost")
    [claim] = worker.claim()
    finish = worker.finish
    worker.finish = lambda claimed, outcome=None: None  # type: ignore[method-assign]
    worker.work(claim)
    if how == "a release":
        finish(claim, Release("the worker shut down"))
    else:
        clock.advance(2 * hf.settings.lease)
        manual.orchestrate()


@pytest.mark.contract("P6")
def test_a_stored_step_returns_the_same_value_to_a_later_attempt(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    seen: list[Any] = []

    def typed() -> tuple[int, str]:
        return (1, "a")

    def untyped() -> Any:
        return [1, "a"]

    @hf.job(name="work", max_attempts=2)
    def work(ctx: Context) -> None:
        seen.append((ctx.step("typed", typed), ctx.step("untyped", untyped)))
        if ctx.run.claim == 1:
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
def test_a_step_result_that_cannot_be_stored_fails_the_run(hf: Holdfast, manual: Manual, database: Database) -> None:
    @hf.job(name="work", max_attempts=3)
    def work(ctx: Context) -> None:
        ctx.step("one", lambda: (1, 2))

    run = work.submit()
    manual.run_all()

    assert (run.refresh().state, run.snapshot.failure_type) == ("failed", "RESULT_NOT_STORABLE"), (
        "the run must not be retried"
    )
    assert run.snapshot.attempt == 1
    assert run.snapshot.error == (
        "the result of step 'one' would change when stored as JSON: it is of type tuple and would come back "
        "as list; annotate the function's result with its type"
    )
    assert database.count("steps") == 0
