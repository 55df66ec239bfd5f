"""Pipelines: stages in a DAG, each a run of its own; one submission, one result."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.alive import register

from holdfast import (
    Context,
    Holdfast,
    InvalidArguments,
    InvalidPolicy,
    Pipeline,
    PipelineNotFound,
    QueueFull,
    Retry,
    RunFailed,
    StageNotDone,
    Worker,
)
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.conftest import Database


def states(hf: Holdfast, run_id: str) -> dict[str, str]:
    return {stage.name: stage.state for stage in hf.pipelines.show(run_id).stages}


@pytest.fixture
def diamond(hf: Holdfast) -> Pipeline:
    """a → b, c → d."""
    pipeline = hf.pipeline("diamond")

    @pipeline.stage()
    def a(number: int) -> int:
        return number + 1

    @pipeline.stage(after=a)
    def b(a: int, fail: bool = False) -> int:
        if fail:
            raise ValueError("b can't")
        return a * 10

    @pipeline.stage(after=a)
    def c(a: int) -> int:
        return a * 100

    @pipeline.stage(after=[b, c])
    def d(b: int, c: int, number: int) -> list[int]:
        return [number, b, c]

    return pipeline


@pytest.mark.contract("L1", "L2")
def test_the_stages_of_a_diamond_run_when_those_before_them_are_done(
    hf: Holdfast, manual: Manual, diamond: Pipeline
) -> None:
    run = diamond.submit(number=1)
    worker = manual.worker()
    assert states(hf, run.id) == {"a": "READY", "b": "NEW", "c": "NEW", "d": "NEW"}

    [claim] = worker.claim(limit=9)
    assert states(hf, run.id)["a"] == "RUNNING"
    worker.work(claim)
    assert states(hf, run.id) == {"a": "DONE", "b": "NEW", "c": "NEW", "d": "NEW"}, "a worker advances no stage"
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


def test_several_last_stages_give_a_mapping_of_results(hf: Holdfast, manual: Manual) -> None:
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


def test_a_stage_knows_its_place(hf: Holdfast, manual: Manual) -> None:
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


@pytest.mark.contract("L9")
def test_a_stage_that_fails_is_in_error_until_an_orchestrator_makes_it_ready_again(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    pipeline, tries = hf.pipeline("retried"), []

    @pipeline.stage(max_attempts=2, retry=Retry(delay=10, jitter=0))
    def shaky() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not now")
        return len(tries)

    run = pipeline.submit()
    manual.run_all()
    assert states(hf, run.id) == {"shaky": "ERROR"}
    assert run.refresh().state == "queued"
    clock.advance(11)
    manual.promote()
    assert states(hf, run.id) == {"shaky": "READY"}
    manual.run_all()
    assert run.result(timeout=1) == 2


def test_an_error_stops_the_pipeline_and_cancels_what_has_not_started(
    hf: Holdfast, manual: Manual, diamond: Pipeline
) -> None:
    run = diamond.submit(number=1, fail=True)
    manual.orchestrate()
    worker = manual.worker()
    worker.work(worker.claim()[0])
    manual.orchestrate()
    b, c = worker.claim(limit=2)
    worker.work(b)
    manual.orchestrate()

    info = hf.pipelines.show(run.id)
    assert {stage.name: stage.state for stage in info.stages} == {
        "a": "DONE",
        "b": "ERROR",
        "c": "RUNNING",
        "d": "ERROR",
    }
    assert (info.run.state, info.run.failure_type) == ("failed", "NEED_FAILED")
    assert info.run.error == "stage b failed: ValueError: b can't"
    assert worker.renew(c).cancelled, "what runs is asked to stop"
    assert hf.verify() == []
    with pytest.raises(RunFailed):
        run.result(timeout=1)


def test_an_error_of_a_stage_that_may_fail_lets_the_next_run_without_its_result(hf: Holdfast, manual: Manual) -> None:
    pipeline = hf.pipeline("tolerant")

    @pipeline.stage(on_error="continue")
    def optional() -> int:
        raise ValueError("no")

    @pipeline.stage(after=optional)
    def last(optional: int | None) -> list[int | None]:
        return [optional]

    run = pipeline.submit()
    manual.run_all()
    assert states(hf, run.id) == {"optional": "ERROR", "last": "DONE"}
    assert run.result(timeout=1) == [None]
    assert hf.verify() == []


def test_cancelling_a_pipeline_cancels_all_of_it(
    hf: Holdfast, manual: Manual, diamond: Pipeline, database: Database
) -> None:
    run = diamond.submit(number=1)
    worker = manual.worker()
    [claim] = worker.claim()
    assert run.cancel(reason="wrong number") == "cancelled"
    manual.orchestrate()

    assert worker.renew(claim).cancelled
    assert [hf.snapshot(stage.run_id).state for stage in hf.pipelines.show(run.id).stages[1:]] == ["cancelled"] * 3
    assert "wrong number" in str(hf.snapshot(hf.pipelines.show(run.id).stages[3].run_id).error)
    worker.work(claim)
    manual.orchestrate()
    assert database.count("stops") == 0
    assert database.count("waits") == database.count("ready") == database.count("needs") == 0
    assert hf.verify() == []


def test_a_pipeline_is_submitted_once_for_an_idempotency_key(
    hf: Holdfast, diamond: Pipeline, database: Database
) -> None:
    first = diamond.using(idempotency_key="k").submit(number=1)
    before = database.counts()
    assert diamond.using(idempotency_key="k").submit(number=1).id == first.id
    assert database.counts() == before


def test_many_pipelines_are_submitted_at_once(hf: Holdfast, manual: Manual, diamond: Pipeline) -> None:
    runs = diamond.submit_many([{"number": number} for number in range(5)])
    manual.run_all()
    assert [run.result(timeout=1)[0] for run in runs] == list(range(5))


def test_a_pipeline_waits_for_its_time_and_for_other_runs(
    hf: Holdfast, manual: Manual, clock: FakeClock, diamond: Pipeline
) -> None:
    other = hf.job(name="other")(lambda: None).submit()
    run = diamond.using(delay=60, after=[other], priority=7, tags={"who": "me"}).submit(number=1)
    info = hf.pipelines.show(run.id)
    assert {hf.snapshot(stage.run_id).priority for stage in info.stages} == {7}
    assert info.run.tags == {"who": "me"}
    manual.run_all()
    assert states(hf, run.id)["a"] == "NEW"
    clock.advance(61)
    manual.run_all()
    assert run.result(timeout=1) == [1, 20, 200]


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [({}, "number"), ({"number": "many"}, "number"), ({"number": 1, "other": 2}, "other")],
)
def test_arguments_are_checked_at_submit_against_all_stages(
    hf: Holdfast, diamond: Pipeline, database: Database, arguments: dict[str, Any], told: str
) -> None:
    hf.start()
    before = database.counts()
    with pytest.raises(InvalidArguments, match=told):
        diamond.submit(**arguments)
    assert database.counts() == before


@pytest.mark.contract("S4")
def test_an_argument_that_does_not_fit_is_told_by_the_stage_that_asks_for_it(hf: Holdfast, diamond: Pipeline) -> None:
    @diamond.stage(after=["b", "c"])
    def named(voice: str, speed: int = 1) -> None: ...

    cases: list[tuple[tuple[int, ...], dict[str, Any], str]] = [
        ((), {"number": 1}, "pipeline diamond: 'voice' is missing, for stage named"),
        ((), {"number": 1, "voise": "soft"}, "no stage asks for 'voise'; did you mean voice?"),
        ((), {"voice": "soft", "x": 1, "y": 2}, "'number' is missing, for stage a and d; no stage asks for 'x'; no "),
        ((1,), {}, "pipeline diamond takes its arguments by name: submit(number=…, fail=…, voice=…, speed=…)"),
        ((), {"number": 1, "voice": 3}, "pipeline diamond: voice: Input should be a valid string"),
    ]
    for args, given, told in cases:
        with pytest.raises(InvalidArguments) as raised:
            diamond.submit(*args, **given)
        assert told in str(raised.value)


@pytest.mark.contract("S4")
def test_a_stage_comes_after_stages_by_name(hf: Holdfast, manual: Manual, diamond: Pipeline) -> None:
    @diamond.stage(after="d")
    def last(d: list[int]) -> int:
        return sum(d)

    assert [stage.stage for stage in diamond.stages["last"].after] == ["d"]
    run = diamond.submit(number=1)
    manual.run_all()
    assert run.result(timeout=1) == sum(hf.get(hf.pipelines.show(run.id).stages[3].run_id).result(timeout=1))
    with pytest.raises(InvalidPolicy, match="names 'dd', which is no stage of it; so far it has a, b, c, d, last"):
        diamond.stage(after="dd")(last)


@pytest.mark.contract("S4")
def test_what_makes_no_sense_is_refused_where_it_is_declared(hf: Holdfast, diamond: Pipeline) -> None:
    stages = diamond.stages
    other = hf.pipeline("other")

    def plain() -> None: ...
    def of_b(b: int) -> None: ...
    def of_text(number: str) -> None: ...
    def of_segments(segments: list[int]) -> None: ...
    def of_context(ctx: int) -> None: ...
    def child() -> None: ...

    known = list(hf.jobs)
    for options, function, told in [
        ({"after": other}, plain, "no stage of it"),
        ({"after": [stages["a"], stages["a"]]}, plain, "twice"),
        ({"each": "part"}, plain, "needs after"),
        ({"each": "part", "after": stages["a"]}, plain, "names no parameter"),
        ({"on_error": "ignore"}, plain, "on_error"),
        ({"allow_failures": 3}, plain, "allow_failures"),
        ({"version": ""}, plain, "version"),
        ({"name": "a"}, plain, "already"),
        ({"name": "two words"}, plain, "can't be the name"),
        ({"name": "number"}, plain, "is an argument of a stage"),
        ({}, child, "can't be the name"),
        ({}, of_b, "does not come after"),
        ({}, of_text, "is int in one stage and str"),
        ({"after": stages["a"]}, of_segments, "0 split stages"),
        ({}, of_context, "ctx: Context"),
        ({"timeout": -1}, plain, "timeout"),
        ({"colour": "red"}, plain, "colour"),
    ]:
        with pytest.raises(InvalidPolicy, match=told):
            diamond.stage(**options)(function)  # type: ignore[arg-type, call-overload]
    assert list(hf.jobs) == known
    with pytest.raises(InvalidPolicy, match="has no stage"):
        other.submit()
    with pytest.raises(InvalidPolicy, match="submit its pipeline"):
        stages["a"].submit(number=1)
    with pytest.raises(InvalidPolicy, match="takes no key"):
        diamond.using(key=lambda **_: "k").submit(number=1)
    with pytest.raises(InvalidPolicy, match="its stages"):
        diamond.using(timeout=3).submit(number=1)


def test_a_rerun_from_a_stage_uses_what_was_done_before(hf: Holdfast, manual: Manual) -> None:
    pipeline, done = hf.pipeline("again"), list[str]()

    @pipeline.stage()
    def listed() -> list[str]:
        done.append("listed")
        return ["x", "y"]

    @pipeline.stage(after=listed, each="part")
    def each(part: str) -> str:
        done.append(f"each {part}")
        return part * 2

    @pipeline.stage(after=listed)
    def beside() -> str:
        done.append("beside")
        return "b"

    @pipeline.stage(after=[each, beside])
    def last(segments: list[str], beside: str) -> str:
        done.append("last")
        return "".join(segments) + beside

    run = pipeline.submit()
    manual.run_all()
    assert sorted(done) == ["beside", "each x", "each y", "last", "listed"]

    done.clear()
    second = hf.pipelines.rerun(run.id, from_stage="last")
    manual.run_all()
    assert (second.result(timeout=1), done) == ("xxyyb", ["last"])
    assert second.snapshot.again_of == run.id
    assert {stage.name: stage.reused for stage in hf.pipelines.show(second.id).stages} == {
        "listed": True,
        "each": True,
        "beside": True,
        "last": False,
    }

    done.clear()
    third = hf.pipelines.rerun(second.id, from_stage="each")
    manual.run_all()
    assert (third.result(timeout=1), sorted(done)) == ("xxyyb", ["each x", "each y", "last"])

    done.clear()
    fourth = third.again()
    manual.run_all()
    assert fourth.result(timeout=1) == "xxyyb"
    assert sorted(done) == ["beside", "each x", "each y", "last", "listed"]
    assert hf.verify() == []


def test_a_rerun_is_given_what_the_first_was_given_to_wait_for(hf: Holdfast, manual: Manual) -> None:
    before = hf.job(name="before")(lambda: "ready")
    needy = hf.pipeline("needy")

    @needy.stage()
    def first(ctx: Context) -> list[Any]:
        return list(ctx.needed)

    @needy.stage(after=first)
    def last(ctx: Context, first: list[str]) -> list[str]:
        return first

    run = needy.using(after=[before.submit()]).submit()
    manual.run_all()
    again = [run.again(), hf.pipelines.rerun(run.id, from_stage="first"), hf.pipelines.rerun(run.id, from_stage="last")]
    manual.run_all()
    assert [one.result(timeout=1) for one in again] == [["ready"]] * 3


def test_a_pipeline_is_done_again_without_its_code(
    hf: Holdfast, manual: Manual, diamond: Pipeline, url: str, clock: FakeClock
) -> None:
    run = diamond.submit(number=3)
    manual.run_all()
    with Holdfast(url, clock=clock) as stranger:
        again = stranger.again(run.id)
        Manual(stranger).orchestrate()
    manual.run_all()
    assert hf.get(again.id).result(timeout=1) == [3, 40, 400]


@pytest.mark.contract("S4")
def test_a_rerun_needs_the_results_of_the_stages_before(hf: Holdfast, manual: Manual, diamond: Pipeline) -> None:
    run = diamond.submit(number=1, fail=True)
    manual.run_all()
    with pytest.raises(StageNotDone, match="stage b ended failed"):
        hf.pipelines.rerun(run.id, from_stage="d")
    with pytest.raises(InvalidArguments, match="no stage 'z'; there are a, b, c, d"):
        hf.pipelines.rerun(run.id, from_stage="z")
    with pytest.raises(PipelineNotFound, match="is no pipeline"):
        hf.pipelines.rerun(hf.pipelines.show(run.id).stages[0].run_id, from_stage="a")
    with pytest.raises(PipelineNotFound):
        hf.pipelines.show("nothing")
    with pytest.raises(InvalidPolicy, match="part of a pipeline"):
        hf.again(hf.pipelines.show(run.id).stages[0].run_id)


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


def test_a_pipeline_called_as_a_function_is_refused(hf: Holdfast, diamond: Pipeline) -> None:
    with pytest.raises(InvalidPolicy, match="submit"):
        diamond(number=1)
    assert diamond.stages["a"](number=1) == 2, "a stage is a function like any other"


@pytest.mark.contract("L1", "L2")
def test_a_worker_carries_a_pipeline_through_in_threads_loops_and_processes(live: Holdfast) -> None:
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

    with Worker(live):
        assert pipeline.submit(count=3).result(timeout=30) == [3, "0:3", "1:5", "2:7"]
    assert live.verify() == []


def test_why_tells_what_a_pipeline_and_its_stages_wait_for(hf: Holdfast, manual: Manual) -> None:
    pipeline = hf.pipeline("told")

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
    assert run.why().reasons == ("it waits for stage listed, which is READY: no live worker knows job told.listed",)
    worker.work(worker.claim()[0])
    [listing, *_] = hf.pipelines.show(run.id).stages
    soon = f"it needs run {listing.run_id} (told.listed), which has succeeded; an orchestrator sees it within a tick"
    assert run.why().reasons == (f"it waits for stage each, which is NEW: {soon}",)
    manual.orchestrate()
    assert run.why().reasons == (
        "it waits for stage each: 0 of 10 segments done, 10 ready: no live worker knows job told.each",
    )
    for claim in worker.claim(limit=8)[:7]:
        worker.work(claim)
    assert run.why().reasons == ("it waits for stage each: 7 of 10 segments done, 1 running, 2 ready",)
    _, split, after = hf.pipelines.show(run.id).stages
    assert hf.why(split.run_id).reasons == ("it waits for its segments: 7 of 10 segments done, 1 running, 2 ready",)
    assert hf.why(after.run_id).reasons == (f"it needs run {split.run_id} (told.each[]), which is queued",)


@pytest.mark.contract("S2")
@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_pipeline_is_there_if_the_callers_transaction_commits(
    hf: Holdfast, manual: Manual, diamond: Pipeline, database: Database, ending: str
) -> None:
    hf.start()
    connection = database.connect()
    database.begin(connection)
    run = diamond.using(connection=connection).submit(number=1)
    connection.execute(ending)
    connection.close()
    manual.run_all()
    if ending == "commit":
        assert run.result(timeout=1) == [1, 20, 200]
    else:
        assert database.count("runs") == 0
    assert hf.verify() == []


@pytest.mark.contract("S4")
def test_a_bounded_queue_refuses_a_pipeline_as_a_whole(hf: Holdfast, diamond: Pipeline, database: Database) -> None:
    hf.queue("default", max_queued=1)
    diamond.submit(number=1)
    before = database.counts()
    with pytest.raises(QueueFull):
        diamond.submit(number=2)
    assert database.counts() == before


@pytest.mark.contract("S3")
@pytest.mark.parametrize(
    ("problem", "harm"),
    [
        ("child_of_no_one", "delete from holdfast_runs where id = '{pipeline}'"),
        ("stop_without_ending", "insert into holdfast_stops values ('{pipeline}', 'no reason', '2026-01-01 00:00:00')"),
        ("stage_left_behind", "delete from holdfast_stops"),
    ],
)
def test_verify_finds_stages_that_belong_to_no_one(
    hf: Holdfast, diamond: Pipeline, database: Database, problem: str, harm: str
) -> None:
    run = diamond.submit(number=1)
    if problem == "stage_left_behind":
        run.cancel()
    assert hf.verify() == []
    database.run(harm.format(pipeline=run.id))
    assert problem in {finding.problem for finding in hf.verify()}
