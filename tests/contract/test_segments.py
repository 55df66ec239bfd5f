"""Segments: a stage split by what another returned; each a run of its own, retried and failed alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Context, Holdfast, InvalidArguments, Pipeline, Retry, Worker, codec
from holdfast.ids import Ids
from holdfast.leases import Claim
from holdfast.orchestrator import expand, promote
from holdfast.outcomes import Succeeded, finish
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Database


def counts(hf: Holdfast, run_id: str, stage: str) -> dict[str, int]:
    [found] = [one for one in hf.pipelines.show(run_id).stages if one.name == stage]
    return {state: count for state, count in found.segments.items() if count}


def split(hf: Holdfast, **options: Any) -> Pipeline:
    """listed → each (a segment fails if its value is below zero) → then, segment by segment → last."""
    pipeline = hf.pipeline("split")

    @pipeline.stage()
    def listed(ctx: Context, values: list[int] | dict[str, int]) -> Any:
        return ctx.segments(values)

    @pipeline.stage(after=listed, each="value", **options)
    def each(value: int) -> int:
        if value < 0:
            raise ValueError(f"{value} is below zero")
        return value * 2

    @pipeline.stage(after=each, each="value")
    def then(value: int, each: int) -> str:
        return f"{value}→{each}"

    @pipeline.stage(after=[each, then])
    def last(each: list[int] | dict[str, int], then: list[str] | dict[str, str]) -> list[Any]:
        return [each, then]

    return pipeline


@pytest.mark.contract("L1", "L9")
def test_a_stage_falls_into_segments_and_the_next_starts_when_the_last_is_done(hf: Holdfast, manual: Manual) -> None:
    run = split(hf).submit(values=[1, 2, 3])
    worker = manual.worker()
    manual.orchestrate()
    worker.work(worker.claim()[0])
    assert counts(hf, run.id, "each") == {}
    manual.orchestrate()
    assert counts(hf, run.id, "each") == {"READY": 3}
    assert counts(hf, run.id, "then") == {"NEW": 3}

    claims = worker.claim(limit=9)
    assert len(claims) == 3
    worker.work(claims[1])
    manual.orchestrate()
    assert counts(hf, run.id, "each") == {"DONE": 1, "RUNNING": 2}
    assert counts(hf, run.id, "then") == {"READY": 1, "NEW": 2}, "a segment waits for its own counterpart only"

    for claim in (claims[0], claims[2]):
        worker.work(claim)
    assert hf.pipelines.show(run.id).stages[3].state == "NEW"
    manual.run_all()
    assert run.result(timeout=1) == [[2, 4, 6], ["1→2", "2→4", "3→6"]]
    assert hf.verify() == []


def test_named_segments_keep_their_names(hf: Holdfast, manual: Manual) -> None:
    run = split(hf).submit(values={"b": 1, "a": 2})
    manual.run_all()
    assert run.result(timeout=1) == [{"b": 2, "a": 4}, {"b": "1→2", "a": "2→4"}]


def test_no_segments_are_done_at_once(hf: Holdfast, manual: Manual) -> None:
    run = split(hf).submit(values=[])
    manual.run_all()
    assert run.result(timeout=1) == [[], []]
    assert hf.verify() == []


@pytest.mark.contract("L9")
def test_only_the_segment_that_failed_is_tried_again(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    pipeline, done = hf.pipeline("alone"), list[int]()

    @pipeline.stage()
    def listed() -> list[int]:
        return [0, 1, 2]

    @pipeline.stage(after=listed, each="value", max_attempts=2, retry=Retry(delay=10, jitter=0))
    def each(value: int) -> int:
        done.append(value)
        if done.count(1) == 1 and value == 1:
            raise OSError("not now")
        return value

    run = pipeline.submit()
    manual.run_all()
    assert counts(hf, run.id, "each") == {"DONE": 2, "ERROR": 1}
    clock.advance(11)
    manual.promote()
    assert counts(hf, run.id, "each") == {"DONE": 2, "READY": 1}
    manual.run_all()
    assert run.result(timeout=1) == [0, 1, 2]
    assert done == [0, 1, 2, 1]


@pytest.mark.contract("L9")
def test_recovery_requeues_only_the_segment_whose_worker_was_lost(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    run = split(hf).submit(values=[1, 2, 3])
    worker, lost = manual.worker("live"), manual.worker("lost")
    worker.work(worker.claim()[0])
    manual.orchestrate()
    [claim] = lost.claim()
    for one in worker.claim(limit=9):
        worker.work(one)
    clock.advance(2 * hf.settings.lease)
    manual.orchestrate()
    assert counts(hf, run.id, "each") == {"DONE": 2, "READY": 1}
    assert hf.snapshot(claim.lease.run_id).takeovers == 1
    manual.run_all()
    assert run.result(timeout=1)[0] == [2, 4, 6]


def test_an_error_of_a_segment_stops_the_pipeline(hf: Holdfast, manual: Manual, database: Database) -> None:
    run = split(hf).submit(values=[1, -1, 3, 4])
    worker = manual.worker()
    worker.work(worker.claim()[0])
    manual.orchestrate()
    _, bad, running = worker.claim(limit=3)
    worker.work(bad)
    manual.orchestrate()

    assert run.refresh().state == "failed"
    assert run.snapshot.error is not None
    assert "stage each failed: segment 1 failed: ValueError: -1 is below zero" in run.snapshot.error
    assert worker.renew(running).cancelled
    assert counts(hf, run.id, "each") == {"RUNNING": 2, "ERROR": 2}
    assert counts(hf, run.id, "then") == {"ERROR": 4}
    assert database.count("waits") == database.count("needs") == database.count("stops") == 0
    assert hf.verify() == []


def test_a_stage_that_continues_goes_on_with_what_succeeded(hf: Holdfast, manual: Manual) -> None:
    run = split(hf, on_error="continue").submit(values=[1, -1, 3, -2])
    manual.run_all()
    assert run.result(timeout=1) == [[2, 6], ["1→2", "3→6"]]
    assert counts(hf, run.id, "each") == {"DONE": 2, "ERROR": 2}
    assert counts(hf, run.id, "then") == {"DONE": 2, "ERROR": 2}, "those that can't follow are skipped, not failed"
    skipped = [one for one in hf.list_runs(limit=100) if one.failure_type == "SKIPPED"]
    assert [(one.stage, one.segment, one.state) for one in reversed(skipped)] == [
        ("then", "1", "cancelled"),
        ("then", "3", "cancelled"),
    ]
    assert hf.verify() == []


def test_a_stage_does_not_go_on_after_one_that_failed_though_its_own_segments_are_done(
    hf: Holdfast, manual: Manual
) -> None:
    pipeline, reached = hf.pipeline("guarded"), []

    @pipeline.stage()
    def listed() -> list[int]:
        return [0, 1]

    @pipeline.stage(after=listed, each="value")
    def each(value: int) -> int:
        return 1 // value

    @pipeline.stage(after=each, each="value", on_error="continue")
    def then(value: int, each: int) -> int:
        return each

    @pipeline.stage(after=then)
    def last(segments: list[int]) -> None:
        reached.append(segments)

    run, worker = pipeline.submit(), manual.worker()
    worker.work(worker.claim()[0])
    manual.orchestrate()
    bad, good = worker.claim(limit=2)
    worker.work(good)
    manual.orchestrate()
    [follower] = worker.claim(limit=9)
    worker.work(follower)
    worker.work(bad)
    whole = hf.pipelines.show(run.id).stages[2].run_id
    ended = [bad.lease.run_id, follower.lease.run_id]
    for _ in range(2):  # an orchestrator that hears of segments, and of whole stages only later
        hf.do(lambda tx: promote.needs(tx, [*ended, *_skipped(hf)], limit=100))
    assert hf.snapshot(whole).place == "waits"

    manual.run_all()
    assert (run.refresh().state, reached) == ("failed", [])
    assert (
        run.snapshot.error
        == "stage each failed: segment 0 failed: ZeroDivisionError: integer division or modulo by zero"
    )
    assert hf.verify() == []


def _skipped(hf: Holdfast) -> list[str]:
    return [one.id for one in hf.list_runs(limit=1000) if one.failure_type == "SKIPPED"]


@pytest.mark.parametrize(("values", "ended"), [([1, -1, 3], "succeeded"), ([1, -1, -3], "failed")])
def test_so_many_segments_may_fail_and_no_more(hf: Holdfast, manual: Manual, values: list[int], ended: str) -> None:
    run = split(hf, allow_failures=1).submit(values=values)
    manual.run_all()
    assert run.refresh().state == ended
    assert hf.verify() == []


@pytest.mark.contract("S4")
@pytest.mark.parametrize("returned", [None, "text", 3, {"": 1}, {"x" * 201: 1}, {"a ": 1}])
def test_what_is_no_list_of_segments_fails_the_stage_with_a_reason(hf: Holdfast, manual: Manual, returned: Any) -> None:
    pipeline = hf.pipeline("wrong")

    @pipeline.stage()
    def listed() -> Any:
        return returned

    @pipeline.stage(after=listed, each="value")
    def each(value: int) -> None: ...

    run = pipeline.submit()
    manual.run_all()
    info = hf.pipelines.show(run.id)
    assert hf.snapshot(info.stages[1].run_id).failure_type == "NOT_SEGMENTS"
    assert "stage listed" in str(info.run.error)
    assert hf.verify() == []


@pytest.mark.contract("S4")
@pytest.mark.parametrize("values", ["text", b"bytes", {"": 1}, {3: 1}, {"a ": 1}])
def test_segments_are_checked_where_they_are_made(hf: Holdfast, values: Any) -> None:
    pipeline = hf.pipeline("checked")

    @pipeline.stage()
    def listed(ctx: Context) -> Any:
        return ctx.segments(values)

    with pytest.raises(InvalidArguments):
        listed()


@pytest.mark.contract("L2")
def test_an_orchestrator_without_the_code_makes_the_segments(
    hf: Holdfast, manual: Manual, url: str, clock: FakeClock
) -> None:
    run = split(hf).submit(values=[1, 2])
    manual.worker().work(manual.worker().claim()[0])
    with Holdfast(url, clock=clock) as stranger:
        Manual(stranger).orchestrate()
    assert counts(hf, run.id, "each") == {"READY": 2}


def test_stages_that_can_not_be_split_yet_are_in_no_ones_way(hf: Holdfast, manual: Manual) -> None:
    slow = hf.pipeline("slow")
    listed = slow.stage(name="listed")(lambda: [1])
    late = slow.stage(name="late", queue="unserved")(lambda: None)
    each = slow.stage(name="each", after=[listed, late], each="value")(lambda value: value)
    slow.stage(name="then", after=each, each="value")(lambda value, each: each)
    slow.submit_many({} for _ in range(expand.STAGES))
    run = split(hf).submit(values=[1])
    worker = manual.worker()
    manual.orchestrate()
    for claim in worker.claim(limit=2 * expand.STAGES):
        worker.work(claim)
    manual.orchestrate()
    assert counts(hf, run.id, "each") == {"READY": 1}


def test_a_source_that_ends_while_its_stage_is_looked_at_is_seen_by_the_next_look(hf: Holdfast, manual: Manual) -> None:
    split(hf).submit(values=[1])
    hf.do(lambda tx: promote.looks(tx, limit=100))
    worker = manual.worker()
    worker.work(worker.claim()[0])
    hf.do(lambda tx: promote.seen(tx, limit=100))
    hf.do(lambda tx: promote.looks(tx, limit=100))
    assert len(hf.do(lambda tx: tx.all("find_expansions", limit=100))) == 2


def test_a_plan_of_another_version_stops_no_orchestrator(hf: Holdfast, manual: Manual, database: Database) -> None:
    pipeline = split(hf)
    strange, run = pipeline.submit(values=[1]), pipeline.submit(values=[2])
    worker = manual.worker()
    for claim in worker.claim(limit=2):
        worker.work(claim)
    database.run(f"update holdfast_runs set args = replace(args, 'follows', 'novelty') where id = '{strange.id}'")
    manual.run_all()
    assert run.result(timeout=1) == [[4], ["2→4"]]
    assert strange.refresh().state == "queued"


def test_orchestrators_at_the_same_stage_make_each_segment_once(hf: Holdfast, manual: Manual) -> None:
    run = split(hf).submit(values=list(range(50)))
    manual.worker().work(manual.worker().claim()[0])
    manual.hf.do(lambda tx: promote.looks(tx, limit=10))

    def orchestrate(_: int) -> None:
        for _ in range(40):
            hf.do(lambda tx: promote.needs_after(tx, ("", ""), limit=1000))
            hf.do(lambda tx: expand.stages(tx, limit=7))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(orchestrate, range(4)))
    manual.orchestrate()
    assert counts(hf, run.id, "each") == {"READY": 50}
    assert counts(hf, run.id, "then") == {"NEW": 50}
    assert hf.verify() == []


@pytest.mark.parametrize(("bad", "state"), [(1, "succeeded"), (2, "failed")])
def test_segments_that_end_while_others_are_made_are_counted(
    hf: Holdfast, manual: Manual, bad: int, state: str
) -> None:
    run = split(hf, allow_failures=1).submit(values=[1, -1, *range(4), *([-1] * (bad - 1)), *range(4, 8)])
    worker = manual.worker()
    worker.work(worker.claim()[0])
    for _ in range(12):
        hf.do(lambda tx: promote.needs_after(tx, ("", ""), limit=1000))
        hf.do(lambda tx: expand.stages(tx, limit=2))
        for claim in worker.claim(limit=9):
            worker.work(claim)
    manual.run_all()
    assert run.refresh().state == state
    if state == "succeeded":
        assert run.result(timeout=1)[0] == [2, *(number * 2 for number in range(8))]
    assert hf.verify() == []


@pytest.mark.timeout(180)
def test_ten_thousand_segments_are_made_in_bounded_transactions(hf: Holdfast, manual: Manual) -> None:
    pipeline = hf.pipeline("large")

    @pipeline.stage()
    def listed() -> list[int]:
        return list(range(10_000))

    @pipeline.stage(after=listed, each="value")
    def each(value: int) -> int:
        return value

    @pipeline.stage(after=each)
    def last(segments: list[int]) -> int:
        return sum(segments)

    run = pipeline.submit()
    worker = manual.worker()
    worker.work(worker.claim()[0])
    hf.do(lambda tx: promote.needs_after(tx, ("", ""), limit=1000))
    made: list[int] = []
    while not made or made[-1]:
        made.append(hf.do(lambda tx: expand.stages(tx, limit=1000)))
    assert made == [1000] * 10 + [0]
    assert counts(hf, run.id, "each") == {"READY": 10_000}
    for _ in range(10):
        claims = worker.claim(limit=1000)
        ends = [(claim.lease, Succeeded(str(claim_value(claim)))) for claim in claims]
        ended = [lease.run_id for lease, _ in ends]
        assert hf.do(lambda tx, ends=ends: finish(tx, ends, holder=worker.name)) == set()  # type: ignore[misc]
        hf.do(lambda tx, ended=ended: promote.needs(tx, ended, limit=1000))  # type: ignore[misc]
    assert counts(hf, run.id, "each") == {"DONE": 10_000}
    manual.run_all()
    assert run.result(timeout=1) == sum(range(10_000))
    assert hf.verify() == []


def claim_value(claim: Claim) -> int:
    return int(codec.load(claim.args)["value"])


@pytest.mark.timeout(120)
def test_a_worker_carries_segments_through(live: Holdfast) -> None:
    pipeline = split(live, on_error="continue")
    with Worker(live, concurrency=8):
        values = [number - 3 for number in range(60)]
        assert pipeline.submit(values=values).result(timeout=60)[0] == [2 * value for value in values if value >= 0]
    assert live.verify() == []


@given(
    shape=st.lists(
        st.tuples(st.booleans(), st.sets(st.integers(0, 5), max_size=3), st.booleans()), min_size=1, max_size=6
    ),
    segments=st.integers(0, 3),
    fails=st.integers(-1, 5),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_dag_runs_each_stage_once_and_after_those_before_it(
    tmp_path_factory: pytest.TempPathFactory,
    shape: list[tuple[bool, set[int], bool]],
    segments: int,
    fails: int,
) -> None:
    """`shape` says of each stage whether it is split, which of those before it it names, and whether it may fail."""
    folder: Path = tmp_path_factory.mktemp("dag")
    done: list[str] = []
    with Holdfast(f"sqlite:///{folder / 'work.db'}", clock=FakeClock(), ids=Ids(seed=1), synchronous="normal") as hf:
        pipeline, stages, before = hf.pipeline("any"), list[Any](), list[set[str]]()
        for number, (is_split, named, tolerant) in enumerate(shape):
            after = [stages[one] for one in sorted(named) if one < number]
            is_split = is_split and bool(after)
            before.append(set().union(*(before[one] | {f"s{one}"} for one in named if one < number)))

            def work(part: Any = None, *, number: int = number) -> list[int]:
                done.append(f"s{number}")
                if number == fails:
                    raise ValueError("it fails")
                return list(range(segments))

            options = {"each": "part"} if is_split else {}
            on_error = "continue" if tolerant else "stop"
            stages.append(
                pipeline.stage(name=f"s{number}", after=after, on_error=on_error, **options)(_one(work, is_split))  # type: ignore[arg-type]
            )
        run = pipeline.submit()
        manual = Manual(hf)
        manual.run_all()
        assert run.refresh().snapshot.ended
        if fails < 0 or fails >= len(shape):
            assert run.state == "succeeded", _failures(hf)
        for number, name in enumerate(f"s{one}" for one in range(len(shape))):
            if name in done and all(not shape[one][2] for one in range(len(shape))):
                assert before[number] <= set(done[: done.index(name)])
        assert hf.verify() == []
        assert hf.read(lambda tx: tx.all("find_ready_queues")) == []


def _one(work: Any, is_split: bool) -> Any:
    def whole() -> Any:
        return work()

    def each(part: Any) -> Any:
        return work(part)

    return each if is_split else whole


def _failures(hf: Holdfast) -> set[str | None]:
    return {one.failure_type for one in hf.list_runs(limit=1000)}
