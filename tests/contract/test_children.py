"""Children: a run submits others and goes on when they have ended, without a worker in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import (
    Child,
    Context,
    Holdfast,
    InvalidArguments,
    InvalidPolicy,
    LeaseLost,
    Retry,
    RunFailed,
    Worker,
)
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.conftest import Database


@pytest.fixture
def double(hf: Holdfast) -> Any:
    @hf.job(name="double")
    def double(number: int) -> int:
        if number < 0:
            raise ValueError(f"{number} is below zero")
        return number * 2

    return double


@pytest.fixture
def parent(hf: Holdfast, double: Any) -> Any:
    @hf.job(name="parent")
    def parent(ctx: Context, numbers: list[int]) -> int:
        base = ctx.step("base", lambda: 1000)
        children = [ctx.submit_child(double, number) for number in numbers]
        return base + int(sum(ctx.gather(*children)))

    return parent


def kinds(hf: Holdfast, run_id: str) -> list[str]:
    return [event.kind for event in hf.story(run_id)]


def test_a_run_goes_on_with_the_results_of_its_children(
    hf: Holdfast, manual: Manual, parent: Any, database: Database
) -> None:
    run = parent.submit([1, 2, 3])
    worker = manual.worker()
    worker.work(worker.claim()[0])
    waiting = run.refresh().snapshot
    assert (waiting.place, waiting.attempt, waiting.tries) == ("waits", 1, 0), "no worker is held, no try used up"
    assert database.count("leases") == 0
    children = hf.list_runs(job="double")
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
    assert run.snapshot.tries == 1
    assert len(hf.list_runs(job="double")) == 3, "the second attempt got the same children"
    assert kinds(hf, run.id) == [
        "RUN_QUEUED",
        "RUN_STARTED",
        "STEP_STARTED",
        "STEP_FINISHED",
        "RUN_WAITS",
        "RUN_STARTED",
        "RUN_SUCCEEDED",
    ]
    assert hf.verify() == []


def test_children_that_have_ended_are_gathered_at_once(hf: Holdfast, manual: Manual, double: Any) -> None:
    attempts = []

    @hf.job(name="twice")
    def twice(ctx: Context) -> list[int]:
        attempts.append(ctx.attempt)
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


def test_waiting_is_not_swallowed_by_code_that_goes_on_after_any_error(
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


def test_a_later_attempt_gets_the_same_children(hf: Holdfast, manual: Manual, clock: FakeClock, double: Any) -> None:
    ids: list[str] = []

    @hf.job(name="crashing", max_attempts=3, retry=Retry(delay=1, jitter=0))
    def crashing(ctx: Context) -> int:
        child = ctx.submit_child(double.using(idempotency_key="only"), len(ids))
        ids.append(child.id)
        if len(ids) == 1:
            raise OSError("after the child was submitted")
        return sum(ctx.gather(child))

    run = crashing.submit()
    manual.run_all()
    clock.advance(5)
    manual.run_all()
    assert run.result(timeout=1) == 0
    assert len(set(ids)) == 1
    assert hf.get(ids[0]).snapshot.segment == "only"


def test_a_named_child_takes_no_number_from_the_others(
    hf: Holdfast, manual: Manual, clock: FakeClock, double: Any
) -> None:
    @hf.job(name="moody", max_attempts=2, retry=Retry(delay=1, jitter=0))
    def moody(ctx: Context) -> list[int]:
        if ctx.attempt > 1:
            ctx.submit_child(double.using(idempotency_key="late"), 50)
        children = [ctx.submit_child(double, number) for number in (1, 2)]
        if ctx.attempt == 1:
            raise OSError("again")
        return ctx.gather(*children)

    run = moody.submit()
    manual.run_all()
    clock.advance(5)
    manual.run_all()
    assert run.result(timeout=1) == [2, 4]


def test_a_child_is_its_parents_own_though_its_job_is_unique(hf: Holdfast, manual: Manual, double: Any) -> None:
    only = double.using(unique="active")

    @hf.job(name="two")
    def two(ctx: Context) -> list[int]:
        return ctx.gather(ctx.submit_child(only, 7), ctx.submit_child(only, 7))

    run = two.submit()
    worker = manual.worker()
    worker.work(worker.claim()[0])
    other = only.submit(7)
    manual.run_all()
    assert run.result(timeout=1) == [14, 14]
    found = [(one.id == other.id, one.parent_id) for one in hf.list_runs() if one.job == "double"]
    assert sorted(found, key=str) == [(False, run.id), (False, run.id), (True, None)]


def test_a_child_that_changed_its_job_is_refused(hf: Holdfast, manual: Manual, clock: FakeClock, double: Any) -> None:
    other = hf.job(name="other")(lambda: None)

    @hf.job(name="moody", max_attempts=2, retry=Retry(delay=1, jitter=0))
    def moody(ctx: Context) -> None:
        if ctx.attempt == 1:
            ctx.submit_child(double, 1)
            raise OSError("again")
        ctx.submit_child(other)

    run = moody.submit()
    manual.run_all()
    clock.advance(5)
    manual.run_all()
    assert "child 1" in str(run.refresh().snapshot.error)
    assert "was double before" in str(run.snapshot.error)


@pytest.mark.contract("L5")
def test_a_stale_attempt_submits_no_child(
    hf: Holdfast, manual: Manual, clock: FakeClock, double: Any, database: Database
) -> None:
    caught: list[type[BaseException]] = []

    @hf.job(name="stale")
    def stale(ctx: Context) -> None:
        clock.advance(2 * hf.settings.lease)
        manual.orchestrate()
        try:
            ctx.submit_child(double, 1)
        except LeaseLost:
            caught.append(LeaseLost)
            raise

    stale.submit()
    worker = manual.worker()
    [claim] = worker.claim()
    with pytest.raises(LeaseLost):
        worker.work(claim)
    assert caught == [LeaseLost]
    assert database.all("select count(*) from holdfast_runs where parent_id is not null") == [(0,)]


@pytest.mark.parametrize("place", ["waits", "leases"])
def test_cancelling_a_run_stops_its_children_and_theirs(
    hf: Holdfast, manual: Manual, double: Any, database: Database, place: str
) -> None:
    @hf.job(name="middle")
    def middle(ctx: Context) -> Any:
        return ctx.gather(*(ctx.submit_child(double, number) for number in range(3)))

    @hf.job(name="top")
    def top(ctx: Context) -> Any:
        children = [ctx.submit_child(middle), ctx.submit_child(double, 9)]
        if place == "leases":
            run.cancel(reason="enough")
            return None if hf.snapshot(run.id).cancel_requested_at is None else ctx.gather(*children)
        return ctx.gather(*children)

    run = top.submit()
    worker = manual.worker()
    worker.work(worker.claim()[0])
    if place == "waits":
        worker.work(worker.claim()[0])
        [running] = worker.claim()
        assert run.cancel(reason="enough") == "cancelled"
        manual.orchestrate()
        assert worker.renew(running).cancelled
        worker.work(running)
    manual.orchestrate()
    manual.run_all()
    states = {(one.job, one.state) for one in hf.list_runs() if one.id != run.id}
    assert run.refresh().state == "cancelled"
    assert states <= {("middle", "cancelled"), ("double", "cancelled"), ("double", "succeeded")}
    assert ("middle", "cancelled") in states
    assert database.count("stops") == database.count("needs") == 0
    assert any("enough" in str(one.error) for one in hf.list_runs(job="double"))
    assert hf.verify() == []


def test_a_run_that_fails_takes_its_open_children_along(hf: Holdfast, manual: Manual, double: Any) -> None:
    @hf.job(name="broken")
    def broken(ctx: Context) -> None:
        ctx.submit_child(double.using(delay=1000), 1)
        raise ValueError("no")

    broken.submit()
    manual.run_all()
    assert [one.state for one in hf.list_runs(job="double")] == ["cancelled"]


def test_a_run_that_succeeds_leaves_its_children_alone(hf: Holdfast, manual: Manual, double: Any) -> None:
    hf.job(name="careless")(_careless(double)).submit()
    manual.run_all()
    assert [one.state for one in hf.list_runs(job="double")] == ["succeeded"]


def _careless(double: Any) -> Any:
    def careless(ctx: Context) -> None:
        ctx.submit_child(double, 1)

    return careless


@pytest.mark.parametrize(("key_order", "passes"), [("due", True), ("strict", False)])
def test_a_waiting_run_lets_its_key_go_unless_it_is_strict(
    hf: Holdfast, manual: Manual, double: Any, key_order: str, passes: bool
) -> None:
    @hf.job(name="keyed", key="document", key_order=key_order)
    def keyed(ctx: Context, document: str, wait: bool) -> int:
        return sum(ctx.gather(ctx.submit_child(double.using(queue="slow"), 1))) if wait else 0

    first, second = keyed.submit("d", True), keyed.submit("d", False)
    worker = manual.worker()
    worker.work(worker.claim()[0])
    manual.orchestrate()
    assert bool(worker.claim(limit=1)) == passes
    if not passes:
        assert "keeps" in " ".join(first.why().reasons)
        manual.run_all()
        assert (first.result(timeout=1), second.result(timeout=1)) == (2, 0)
    assert hf.verify() == []


@pytest.mark.parametrize("kind", ["job", "pipeline"])
def test_a_full_queue_refuses_no_child(hf: Holdfast, manual: Manual, kind: str) -> None:
    pipeline = hf.pipeline("one")
    pipeline.stage(name="only")(lambda: 1)
    child = pipeline if kind == "pipeline" else hf.job(name="work")(lambda: 1)

    @hf.job(name="busy")
    def busy(ctx: Context) -> list[int]:
        return ctx.gather(ctx.submit_child(child))

    hf.queue("default", max_queued=1)
    run = busy.submit()
    manual.run_all()
    assert run.result(timeout=1) == [1]
    assert hf.verify() == []


def test_a_run_that_keeps_its_key_does_not_wait_for_a_child_of_the_same_key(hf: Holdfast, manual: Manual) -> None:
    child = hf.job(name="child", key="{name}")(lambda name: name)

    @hf.job(name="keeper", key="{name}", key_order="strict")
    def keeper(ctx: Context, name: str, others: list[str]) -> list[str]:
        return ctx.gather(*[ctx.submit_child(child, other) for other in others])

    stuck, fine = keeper.submit("a", ["b", "a"]), keeper.submit("c", ["d"])
    manual.run_all()
    assert fine.result(timeout=1) == ["d"]
    assert "child 2 can't start before this run lets key a go" in str(stuck.refresh().snapshot.error)
    assert {one.state for one in hf.list_runs() if one.parent_id == stuck.id} == {"cancelled"}


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


@pytest.mark.timeout(120)
def test_a_hundred_children_each_gather_three_deep(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="tree")
    def tree(ctx: Context, deep: int, wide: int) -> int:
        if not deep:
            return 1
        return sum(ctx.gather(*(ctx.submit_child(tree, deep - 1, 1) for _ in range(wide))))

    run = tree.submit(3, 100)
    assert manual.run_all() == 2 * (1 + 100 + 100) + 100
    assert run.result(timeout=1) == 100
    assert hf.verify() == []


@pytest.mark.contract("S4")
def test_bad_children_are_refused_and_nothing_is_written(hf: Holdfast, double: Any, manual: Manual) -> None:
    told: list[str] = []

    @hf.job(name="wrong")
    def wrong(ctx: Context) -> None:
        attempts: list[tuple[type[Exception], Callable[[], object]]] = [
            (InvalidArguments, lambda: ctx.submit_child(double, "many")),
            (InvalidPolicy, lambda: ctx.submit_child(double.using(idempotency_key="1"), 1)),
            (InvalidPolicy, lambda: ctx.submit_child(double.using(connection=object()), 1)),
            (InvalidPolicy, lambda: ctx.gather("nothing")),  # type: ignore[call-overload]
        ]
        for expected, bad in attempts:
            with pytest.raises(expected):
                bad()
            told.append(expected.__name__)

    run = wrong.submit()
    manual.run_all()
    assert run.result(timeout=1) is None
    assert len(told) == 4
    assert len(hf.list_runs()) == 1


def test_called_inline_children_run_at_once(hf: Holdfast, parent: Any, double: Any) -> None:
    assert parent([1, 2]) == 1006
    with pytest.raises(RunFailed, match="below zero"):
        parent([-1])

    def both(ctx: Context) -> list[Any]:
        child = ctx.submit_child(double, 1)
        assert isinstance(child, Child)
        return ctx.gather(child, ctx.submit_child(double, -1), return_exceptions=True)

    answers = hf.job(name="both")(both)()
    assert answers[0] == 2
    assert isinstance(answers[1], RunFailed)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("bad", [False, True])
def test_tasks_of_a_group_wait_together_unless_one_fails(hf: Holdfast, manual: Manual, double: Any, bad: bool) -> None:
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


def test_a_worker_with_one_place_serves_parents_and_children(live: Holdfast) -> None:
    @live.job(name="leaf")
    def leaf(number: int) -> int:
        return number

    @live.job(name="thread")
    def thread(ctx: Context, count: int) -> int:
        return sum(ctx.gather(*(ctx.submit_child(leaf, number) for number in range(count))))

    @live.job(name="loop")
    async def loop(ctx: Context, count: int) -> int:
        return sum(ctx.gather(*(ctx.submit_child(thread, count) for _ in range(3))))

    with Worker(live, concurrency=1):
        assert loop.submit(5).result(timeout=60) == 30
    assert live.verify() == []
