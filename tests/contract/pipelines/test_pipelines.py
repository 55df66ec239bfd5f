"""Pipelines: a stage runs after the stages before it, and its state can be read."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.stages import states
from tests.contract.helpers.workers import register

from holdfast import Context, Holdfast, Pipeline
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("L1", "L2")
def test_each_stage_of_a_diamond_runs_after_the_stages_before_it(
    hf: Holdfast, manual: Manual, diamond: Pipeline
) -> None:
    run = diamond.submit(number=1)
    worker = manual.worker()
    assert states(hf, run.id) == dict.fromkeys("abcd", "NEW"), "a submission makes no stage ready"
    assert worker.claim(limit=9) == []
    manual.orchestrate()
    assert states(hf, run.id) == {"a": "READY", "b": "NEW", "c": "NEW", "d": "NEW"}

    [claim] = worker.claim(limit=9)
    assert states(hf, run.id)["a"] == "RUNNING"
    worker.work(claim)
    assert states(hf, run.id) == {"a": "DONE", "b": "NEW", "c": "NEW", "d": "NEW"}, (
        "a worker makes no later stage ready"
    )
    manual.orchestrate()
    assert states(hf, run.id) == {"a": "DONE", "b": "READY", "c": "READY", "d": "NEW"}

    first, second = worker.claim(limit=9)
    worker.work(second)
    manual.orchestrate()
    assert states(hf, run.id) == {"a": "DONE", "b": "RUNNING", "c": "DONE", "d": "NEW"}
    worker.work(first)
    manual.run_all()

    assert states(hf, run.id) == dict.fromkeys("abcd", "DONE")
    assert run.result(timeout=1) == [1, 20, 200]
    assert hf.verify() == []


def test_a_pipeline_with_several_last_stages_returns_a_mapping(hf: Holdfast, manual: Manual) -> None:
    pipeline = hf.pipeline("fork")

    @pipeline.stage()
    def one() -> int:
        return 1

    @pipeline.stage()
    def two() -> int:
        return 2

    run = pipeline.submit()
    manual.run_all()
    assert run.result(timeout=1) == {"one": 1, "two": 2}


def test_a_stage_can_read_its_pipeline_its_name_and_its_segment(hf: Holdfast, manual: Manual) -> None:
    pipeline = hf.pipeline("placed")

    @pipeline.stage(version="7")
    def listed(ctx: Context) -> Any:
        return ctx.segments({"first": [ctx.run.parent_id, ctx.run.stage, ctx.run.segment, ctx.run.stage_version]})

    @pipeline.stage(after=listed, each="part", version="8")
    def each(ctx: Context, part: list[Any]) -> list[Any]:
        return [part, [ctx.run.parent_id, ctx.run.stage, ctx.run.segment, ctx.run.stage_version]]

    run = pipeline.submit()
    manual.run_all()
    assert run.result(timeout=1) == {"first": [[run.id, "listed", None, "7"], [run.id, "each", "first", "8"]]}


def test_pipelines_are_listed_without_their_stages(hf: Holdfast, manual: Manual, diamond: Pipeline) -> None:
    runs = [diamond.submit(number=number) for number in range(3)]
    hf.job(name="other")(lambda: None).submit()
    manual.run_all()
    last = diamond.submit(number=9)
    assert [run.id for run in hf.pipelines.list()] == [last.id, *(run.id for run in reversed(runs))]
    assert [run.id for run in hf.pipelines.list(state="succeeded", limit=2)] == [runs[2].id, runs[1].id]
    assert hf.pipelines.list(name="none") == []


def test_a_job_can_be_a_stage_of_several_pipelines(hf: Holdfast, manual: Manual) -> None:
    first, second = hf.pipeline("first"), hf.pipeline("second")

    @first.stage()
    @second.stage(rate="100/s")
    @hf.job(name="alone")
    def one(number: int) -> int:
        return number + 1

    runs = [job.submit(number=1) for job in (first, second, hf.jobs["alone"])]
    manual.run_all()
    assert [run.result(timeout=1) for run in runs] == [2, 2, 2]


def test_stages_go_to_their_own_queues(hf: Holdfast, manual: Manual) -> None:
    pipeline = hf.pipeline("queued", queue="slow", priority=3)

    @pipeline.stage()
    def one() -> int:
        return 1

    @pipeline.stage(after=one, queue="gpu", priority=9)
    def two(one: int) -> int:
        return one + 1

    run = pipeline.submit()
    first, second = (hf.snapshot(stage.run_id) for stage in hf.pipelines.show(run.id).stages)
    assert [(one.queue, one.priority) for one in (run.snapshot, first, second)] == [
        ("slow", 3),
        ("slow", 3),
        ("gpu", 9),
    ]
    manual.run_all()
    assert run.result(timeout=1) == 2


@pytest.mark.contract("L1", "L2")
def test_a_worker_runs_a_pipeline_in_threads_and_in_the_event_loop(live: Holdfast) -> None:
    pipeline, together = live.pipeline("mixed"), threading.Barrier(2, timeout=20)

    @pipeline.stage()
    def listed(ctx: Context, count: int) -> Any:
        return ctx.segments(range(count))

    @pipeline.stage(after=listed, each="number")
    async def doubled(ctx: Context, number: int, count: int) -> int:
        return number * 2 + count

    @pipeline.stage(after=doubled, each="number")
    def shown(number: int, doubled: int) -> str:
        return f"{number}:{doubled}"

    @pipeline.stage(after=listed)
    def left(listed: list[int]) -> int:
        together.wait()
        return len(listed)

    @pipeline.stage(after=listed)
    def right() -> None:
        together.wait()

    @pipeline.stage(after=[shown, left, right])
    def last(segments: list[str], left: int) -> list[Any]:
        return [left, *segments]

    with live.worker():
        assert pipeline.submit(count=3).result(timeout=60) == [3, "0:3", "1:5", "2:7"]
    assert live.verify() == []


def test_why_says_what_a_pipeline_and_its_stages_wait_for(hf: Holdfast, manual: Manual) -> None:
    pipeline = hf.pipeline("numbers")

    @pipeline.stage()
    def listed() -> list[int]:
        return list(range(10))

    @pipeline.stage(after=listed, each="number")
    def each(number: int) -> int:
        return number

    @pipeline.stage(after=each)
    def last(segments: list[int]) -> int:
        return len(segments)

    run, worker = pipeline.submit(), manual.worker()
    register(hf, "w", jobs=["other"])
    assert run.why().reasons == ("it waits for stage listed, which is NEW: an orchestrator will check it shortly",)
    manual.promote()
    assert run.why().reasons == ("it waits for stage listed, which is READY: no live worker knows job numbers.listed",)
    worker.work(worker.claim()[0])
    [listing, *_] = hf.pipelines.show(run.id).stages
    ended = f"it depends on run {listing.run_id} (numbers.listed), which has succeeded"
    soon = f"{ended}; an orchestrator will continue it shortly"
    assert run.why().reasons == (f"it waits for stage each, which is NEW: {soon}",)
    manual.orchestrate()
    assert run.why().reasons == (
        "it waits for stage each: 0 of 10 segments done, 10 ready: no live worker knows job numbers.each",
    )
    for claim in worker.claim(limit=8)[:7]:
        worker.work(claim)
    assert run.why().reasons == ("it waits for stage each: 7 of 10 segments done, 1 running, 2 ready",)
    _, split, after = hf.pipelines.show(run.id).stages
    assert hf.why(split.run_id).reasons == ("it waits for its segments: 7 of 10 segments done, 1 running, 2 ready",)
    assert hf.why(after.run_id).reasons == (f"it depends on run {split.run_id} (numbers.each[]), which is queued",)


@pytest.mark.contract("S3")
@pytest.mark.parametrize(
    ("problem", "harm"),
    [
        ("child_without_parent", "delete from holdfast_runs where id = '{pipeline}'"),
        (
            "child_cancellation_without_ending",
            "insert into holdfast_child_cancellations values ('{pipeline}', 'no reason', '2026-01-01 00:00:00')",
        ),
        ("stage_left_behind", "delete from holdfast_child_cancellations"),
    ],
)
def test_verify_finds_stages_without_a_pipeline(
    hf: Holdfast, diamond: Pipeline, database: Database, problem: str, harm: str
) -> None:
    run = diamond.submit(number=1)
    if problem == "stage_left_behind":
        run.cancel()
    assert hf.verify() == []
    database.run(harm.format(pipeline=run.id))
    assert problem in {finding.problem for finding in hf.verify()}
