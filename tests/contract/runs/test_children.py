"""Children: a run submits others and continues after they have ended, without occupying a worker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.listing import runs_of

from holdfast import Child, Context, Holdfast, RunFailed
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.fixture
def parent(hf: Holdfast, double: Any) -> Any:
    @hf.job(name="parent")
    def parent(ctx: Context, numbers: list[int]) -> int:
        base = ctx.step("base", lambda: 1000)
        children = [ctx.submit_child(double, number) for number in numbers]
        return base + int(sum(ctx.gather(*children)))

    return parent


def kinds(hf: Holdfast, run_id: str) -> list[str]:
    return [event.kind for event in hf.timeline(run_id)]


def test_a_run_continues_with_the_results_of_its_children(
    hf: Holdfast, manual: Manual, parent: Any, database: Database
) -> None:
    run = parent.submit([1, 2, 3])
    worker = manual.worker()
    worker.work(worker.claim()[0])
    waiting = run.refresh().snapshot
    assert (waiting.place, waiting.claim, waiting.attempt) == ("waits", 1, 0), (
        "no worker is occupied and no attempt is used up"
    )
    assert database.count("leases") == 0
    children = runs_of(hf, job="double")
    assert [(child.parent_id, child.stage, child.segment, child.kind) for child in reversed(children)] == [
        (run.id, "child", str(number), "child") for number in (1, 2, 3)
    ]

    for claim in worker.claim(limit=9):
        worker.work(claim)
    assert run.refresh().snapshot.place == "waits"
    manual.orchestrate()
    assert run.refresh().snapshot.place == "ready"
    manual.run_all()
    assert run.result(timeout=1) == 1012
    assert run.snapshot.attempt == 1
    assert len(runs_of(hf, job="double")) == 3, "the second execution must get the same children"
    assert kinds(hf, run.id) == [
        "RUN_QUEUED",
        "RUN_STARTED",
        "STEP_STARTED",
        "STEP_FINISHED",
        "RUN_WAITING_FOR_CHILDREN",
        "RUN_STARTED",
        "RUN_SUCCEEDED",
    ]
    assert hf.verify() == []


def test_children_that_have_ended_are_gathered_at_once(hf: Holdfast, manual: Manual, double: Any) -> None:
    attempts = []

    @hf.job(name="twice")
    def twice(ctx: Context) -> list[int]:
        attempts.append(ctx.run.claim)
        first = ctx.gather(ctx.submit_child(double, 1))
        return first + ctx.gather(*(ctx.submit_child(double, number) for number in (2, 3))) + ctx.gather()

    run = twice.submit()
    manual.run_all()
    assert run.result(timeout=1) == [2, 4, 6]
    assert attempts == [1, 2, 3]


def test_a_child_that_fails_raises_where_it_is_gathered(hf: Holdfast, manual: Manual, parent: Any, double: Any) -> None:
    @hf.job(name="lenient")
    def lenient(ctx: Context) -> list[str]:
        children = [ctx.submit_child(double, number) for number in (1, -1)]
        return [type(answer).__name__ for answer in ctx.gather(*children, return_exceptions=True)]

    strict, tolerant = parent.submit([1, -1, 2]), lenient.submit()
    manual.run_all()
    assert strict.refresh().state == "failed"
    assert "RunFailed" in str(strict.snapshot.error)
    assert "-1 is below zero" in str(strict.snapshot.error)
    assert tolerant.result(timeout=1) == ["int", "RunFailed"]
    assert hf.verify() == []


def test_code_that_catches_every_exception_does_not_swallow_the_wait_for_children(
    hf: Holdfast, manual: Manual, double: Any
) -> None:
    @hf.job(name="stubborn")
    def stubborn(ctx: Context) -> int:
        try:
            return int(ctx.gather(ctx.submit_child(double, 4))[0])
        except Exception:
            return -1

    run = stubborn.submit()
    manual.run_all()
    assert run.result(timeout=1) == 8


def test_a_pipeline_can_be_a_child(hf: Holdfast, manual: Manual) -> None:
    pipeline = hf.pipeline("inner")

    @pipeline.stage()
    def listed(count: int) -> list[int]:
        return list(range(count))

    @pipeline.stage(after=listed, each="value")
    def each(value: int) -> int:
        return value + 1

    @hf.job(name="outer")
    def outer(ctx: Context) -> Any:
        return ctx.gather(ctx.submit_child(pipeline, count=3))

    run = outer.submit()
    manual.run_all()
    assert run.result(timeout=1) == [[1, 2, 3]]
    assert hf.verify() == []


def test_a_hundred_children_gather_children_of_their_own(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="tree")
    def tree(ctx: Context, deep: int, wide: int) -> int:
        if not deep:
            return 1
        return sum(ctx.gather(*(ctx.submit_child(tree, deep - 1, 1) for _ in range(wide))))

    run = tree.submit(3, 100)
    assert manual.run_all() == 2 * (1 + 100 + 100) + 100
    assert run.result(timeout=1) == 100
    assert hf.verify() == []


def test_children_run_at_once_if_their_parent_is_called_directly(hf: Holdfast, parent: Any, double: Any) -> None:
    assert parent([1, 2]) == 1006
    with pytest.raises(RunFailed, match="below zero"):
        parent([-1])

    answers: list[Any] = []

    @hf.job(name="both")
    def both(ctx: Context) -> None:
        child = ctx.submit_child(double, 1)
        assert isinstance(child, Child)
        answers.extend(ctx.gather(child, ctx.submit_child(double, -1), return_exceptions=True))

    both()
    assert answers[0] == 2
    assert isinstance(answers[1], RunFailed)


@pytest.mark.parametrize("bad", [False, True])
def test_tasks_of_a_task_group_wait_together_unless_one_fails(
    hf: Holdfast, manual: Manual, double: Any, bad: bool
) -> None:
    @hf.job(name="grouped")
    def grouped(ctx: Context) -> list[int]:
        async def one(number: int) -> list[int]:
            if number < 0:
                raise ValueError("bad")
            return ctx.gather(ctx.submit_child(double, number))

        async def both() -> list[int]:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(number)) for number in (1, -2 if bad else 2)]
            return [number for task in tasks for number in task.result()]

        return asyncio.run(both())

    run = grouped.submit()
    manual.run_all()
    if bad:
        assert "ValueError: bad" in str(run.refresh().snapshot.error)
    else:
        assert run.result(timeout=1) == [2, 4]


def test_a_worker_with_concurrency_one_runs_parents_and_children(live: Holdfast) -> None:
    @live.job(name="leaf")
    def leaf(number: int) -> int:
        return number

    @live.job(name="thread")
    def thread(ctx: Context, count: int) -> int:
        return sum(ctx.gather(*(ctx.submit_child(leaf, number) for number in range(count))))

    @live.job(name="loop")
    async def loop(ctx: Context, count: int) -> int:
        return sum(ctx.gather(*(ctx.submit_child(thread, count) for _ in range(3))))

    with live.worker(concurrency=1):
        assert loop.submit(5).result(timeout=60) == 30
    assert live.verify() == []
