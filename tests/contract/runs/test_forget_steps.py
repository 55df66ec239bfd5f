"""Forgetting steps: a forgotten step is executed again by the current attempt."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.waiting import PATIENCE

from holdfast import Context, Event, Holdfast, InvalidPolicy, LeaseLost, Retry, Run, StepNotFound
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database

SOON = Retry(step_attempts=1, delay=timedelta(milliseconds=1), jitter=0)


def steps_of(story: list[Event]) -> list[tuple[str, str, int | None]]:
    return [(event.kind, event.data["step"], event.claim) for event in story if event.kind.startswith("STEP_")]


@pytest.mark.contract("P6", "P11")
def test_a_forgotten_step_is_executed_again_by_the_next_attempt(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    begun: list[int] = []

    def begin() -> int:
        begun.append(len(begun) + 1)
        return begun[-1]

    @hf.job(name="work", max_attempts=4)
    def work(ctx: Context) -> list[int]:
        kept, operation = ctx.step("keep", lambda: 7), ctx.step("begin", begin)
        clock.advance(1)
        if ctx.run.claim == 2:
            ctx.forget("begin")
        if ctx.run.claim < 4:
            raise ConnectionError(f"operation {operation}")
        return [kept, operation]

    run = work.submit()
    for _ in range(4):
        manual.run_all()
        clock.advance(60)

    assert run.result(timeout=1) == [7, 2]
    assert begun == [1, 2]
    assert steps_of(run.timeline()) == [
        *[(kind, name, 1) for name in ("keep", "begin") for kind in ("STEP_STARTED", "STEP_FINISHED")],
        ("STEP_FORGOTTEN", "begin", 2),
        ("STEP_STARTED", "begin", 3),
        ("STEP_FINISHED", "begin", 3),
    ]
    assert [step.name for step in hf.steps(run)] == ["keep", "begin"]
    assert [(step.name, step.claim, step.forgotten) for step in hf.run_details(run).steps] == [
        ("keep", 1, False),
        ("begin", 1, True),
        ("begin", 3, False),
    ]
    assert hf.verify() == []


@pytest.mark.contract("P6")
def test_a_step_can_be_forgotten_and_executed_again_in_the_same_attempt(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    @hf.job(name="work", max_attempts=2)
    def work(ctx: Context) -> list[int]:
        if ctx.run.claim == 2:
            return [ctx.step("number", lambda: 0)]
        seen = []
        for number in range(1, 4):
            seen.append(ctx.step("number", lambda: number))  # noqa: B023
            clock.advance(1)
            if number < 3:
                ctx.forget("number")
        assert seen == [1, 2, 3]
        raise ConnectionError

    run = work.submit()
    manual.run_all()
    clock.advance(60)
    manual.run_all()

    assert run.result(timeout=1) == [3]
    assert [kind for kind, _, _ in steps_of(run.timeline())] == [
        *["STEP_STARTED", "STEP_FINISHED", "STEP_FORGOTTEN"] * 2,
        "STEP_STARTED",
        "STEP_FINISHED",
    ]
    assert (database.count("steps"), database.count("forgotten_steps")) == (1, 2)
    clock.advance(timedelta(days=400))
    hf.prune()
    assert (database.count("runs"), database.count("steps"), database.count("forgotten_steps")) == (0, 0, 0)


@pytest.mark.contract("P6", "S4")
def test_a_step_without_a_stored_result_cannot_be_forgotten(hf: Holdfast, manual: Manual, database: Database) -> None:
    caught: list[str] = []

    @hf.job(name="work", retry=Retry(step_attempts=1))
    def work(ctx: Context) -> int:
        def broken() -> int:
            with pytest.raises(StepNotFound):
                ctx.forget("broken")  # the step has not ended
            raise ValueError

        with pytest.raises(ValueError):
            ctx.step("broken", broken)
        ctx.step("one", lambda: 1)
        ctx.forget("one")
        for name in ("never", "broken", "one"):
            with pytest.raises(StepNotFound, match=f"has no stored step '{name}'") as error:
                ctx.forget(name)
            caught.append(error.value.code)
        with pytest.raises(InvalidPolicy):
            ctx.forget("")
        return ctx.step("one", lambda: 2)

    run = work.submit()
    manual.run_all()

    assert run.result(timeout=1) == 2
    assert caught == ["step_not_found"] * 3
    assert [kind for kind, _, _ in steps_of(run.timeline())].count("STEP_FORGOTTEN") == 1
    assert database.count("forgotten_steps") == 1


@pytest.mark.contract("L5", "L7")
def test_a_stale_worker_forgets_nothing(hf: Holdfast, manual: Manual, clock: FakeClock, database: Database) -> None:
    """Its lease expires after the step; the attempt of another worker continues with the stored step."""
    done: list[int] = []

    @hf.job(name="work", max_attempts=3)
    def work(ctx: Context) -> int:
        value = ctx.step("begin", lambda: done.append(ctx.run.claim) or ctx.run.claim)  # type: ignore[func-returns-value]
        if ctx.run.claim == 1:
            clock.advance(2 * hf.settings.lease)
            manual.orchestrate()
            [fresh] = manual.worker("other").claim()
            before = database.counts()
            with pytest.raises(LeaseLost):
                ctx.forget("begin")
            assert database.counts() == before
            manual.worker("other").work(fresh)
        return value

    run = work.submit()
    [stale] = manual.worker("suspended").claim()
    with pytest.raises(LeaseLost):
        manual.worker("suspended").work(stale)

    assert (run.result(timeout=1), done) == (1, [1])
    assert "STEP_FORGOTTEN" not in [event.kind for event in run.timeline()]
    assert database.count("forgotten_steps") == 0


@pytest.mark.contract("P6")
def test_jobs_in_threads_and_in_the_event_loop_can_forget_steps(live: Holdfast) -> None:
    begun: list[str] = []

    def begin(what: str) -> str:
        begun.append(what)
        return f"{what} {begun.count(what)}"

    async def begin_async(what: str) -> str:
        return begin(what)

    @live.job(name="thread", max_attempts=3, retry=SOON)
    def thread(ctx: Context) -> str:
        operation = ctx.step("begin", begin, "thread")
        if ctx.run.claim == 2:
            ctx.forget("begin")
        if ctx.run.claim < 3:
            raise ConnectionError
        return operation

    @live.job(name="loop", max_attempts=2, retry=SOON)
    async def loop(ctx: Context) -> list[str]:
        first = await ctx.step("begin", begin_async, "loop")
        if ctx.run.claim == 1:
            ctx.forget("begin")
            raise ConnectionError
        ctx.forget("begin")
        return [first, await ctx.step("begin", begin_async, "loop")]

    with live.worker():
        runs: list[Run[Any]] = [thread.submit(), loop.submit()]
        assert [run.result(timeout=PATIENCE) for run in runs] == ["thread 2", ["loop 2", "loop 3"]]
    assert sorted(begun) == ["loop"] * 3 + ["thread"] * 2
    forgotten = [[event.claim for event in run.timeline() if event.kind == "STEP_FORGOTTEN"] for run in runs]
    assert forgotten == [[2], [1, 2]]


@pytest.mark.contract("S3")
def test_a_plain_call_has_no_step_to_forget(hf: Holdfast) -> None:
    @hf.job(name="work")
    def work(ctx: Context) -> list[int]:
        first = ctx.step("one", lambda: 1)
        ctx.forget("one")
        return [first, ctx.step("one", lambda: 2)]

    assert work() == [1, 2]
