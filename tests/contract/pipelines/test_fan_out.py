"""Fan-out: orchestrators create the segments of a stage, each once, in bounded transactions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from tests.contract.helpers.segments import counts, split

from holdfast import Holdfast
from holdfast.orchestrator import fan_out, promote
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.finish import finish_runs
from holdfast.runs.outcomes import Succeeded
from holdfast.support import json_text
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("L2")
def test_an_orchestrator_without_the_code_creates_the_segments(
    hf: Holdfast, manual: Manual, url: str, clock: FakeClock
) -> None:
    run = split(hf).submit(values=[1, 2])
    manual.promote()
    manual.worker().work(manual.worker().claim()[0])
    with Holdfast(url, clock=clock) as stranger:
        Manual(stranger).orchestrate()
    assert counts(hf, run.id, "each") == {"READY": 2}


def test_stages_that_cannot_be_split_yet_block_no_other(hf: Holdfast, manual: Manual) -> None:
    slow = hf.pipeline("slow")
    listed = slow.stage(name="listed")(lambda: [1])
    late = slow.stage(name="late", queue="unserved")(lambda: None)
    each = slow.stage(name="each", after=[listed, late], each="value")(lambda value: value)
    slow.stage(name="then", after=each, each="value")(lambda value, each: each)
    slow.submit_many({} for _ in range(fan_out.STAGES))
    run = split(hf).submit(values=[1])
    worker = manual.worker()
    manual.orchestrate()
    for claim in worker.claim(limit=2 * fan_out.STAGES):
        worker.work(claim)
    manual.orchestrate()
    assert counts(hf, run.id, "each") == {"READY": 1}


def test_a_source_stage_that_ends_during_a_check_is_seen_by_the_next_check(hf: Holdfast, manual: Manual) -> None:
    split(hf).submit(values=[1])
    hf.do(lambda tx: promote.check_waiting(tx, limit=100))
    worker = manual.worker()
    worker.work(worker.claim()[0])
    hf.do(lambda tx: promote.mark_checked(tx, limit=100))
    hf.do(lambda tx: promote.check_waiting(tx, limit=100))
    assert len(hf.do(lambda tx: tx.all("find_expansions", limit=100))) == 2


def test_a_plan_of_another_version_does_not_stop_the_orchestrator(
    hf: Holdfast, manual: Manual, database: Database
) -> None:
    pipeline = split(hf)
    strange, run = pipeline.submit(values=[1]), pipeline.submit(values=[2])
    worker = manual.worker()
    manual.promote()
    for claim in worker.claim(limit=2):
        worker.work(claim)
    database.run(f"update holdfast_runs set args = replace(args, 'follows', 'novelty') where id = '{strange.id}'")
    manual.run_all()
    assert run.result(timeout=1) == [[4], ["2→4"]]
    assert strange.refresh().state == "queued"


def test_several_orchestrators_create_each_segment_once(hf: Holdfast, manual: Manual) -> None:
    run = split(hf).submit(values=list(range(50)))
    manual.promote()
    manual.worker().work(manual.worker().claim()[0])
    manual.hf.do(lambda tx: promote.check_waiting(tx, limit=10))

    def orchestrate(_: int) -> None:
        for _ in range(40):
            hf.do(lambda tx: promote.dependencies_after(tx, ("", ""), limit=1000))
            hf.do(lambda tx: fan_out.stages(tx, limit=7))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(orchestrate, range(4)))
    manual.orchestrate()
    assert counts(hf, run.id, "each") == {"READY": 50}
    assert counts(hf, run.id, "then") == {"NEW": 50}
    assert hf.verify() == []


@pytest.mark.parametrize(("bad", "state"), [(1, "succeeded"), (2, "failed")])
def test_segments_that_end_while_others_are_created_are_counted(
    hf: Holdfast, manual: Manual, bad: int, state: str
) -> None:
    run = split(hf, allow_failures=1).submit(values=[1, -1, *range(4), *([-1] * (bad - 1)), *range(4, 8)])
    manual.promote()
    worker = manual.worker()
    worker.work(worker.claim()[0])
    for _ in range(12):
        hf.do(lambda tx: promote.dependencies_after(tx, ("", ""), limit=1000))
        hf.do(lambda tx: fan_out.stages(tx, limit=2))
        for claim in worker.claim(limit=9):
            worker.work(claim)
    manual.run_all()
    assert run.refresh().state == state
    if state == "succeeded":
        assert run.result(timeout=1)[0] == [2, *(number * 2 for number in range(8))]
    assert hf.verify() == []


def test_ten_thousand_segments_are_created_in_bounded_transactions(hf: Holdfast, manual: Manual) -> None:
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
    manual.promote()
    worker = manual.worker()
    worker.work(worker.claim()[0])
    hf.do(lambda tx: promote.dependencies_after(tx, ("", ""), limit=1000))
    made: list[int] = []
    while not made or made[-1]:
        made.append(hf.do(lambda tx: fan_out.stages(tx, limit=1000)))
    assert made == [1000] * 10 + [0]
    assert counts(hf, run.id, "each") == {"READY": 10_000}
    for _ in range(10):
        claims = worker.claim(limit=1000)
        ends = [(claim.lease, Succeeded(str(claim_value(claim)))) for claim in claims]
        ended = [lease.run_id for lease, _ in ends]
        assert hf.do(lambda tx, ends=ends: finish_runs(tx, ends, holder=worker.name)) == set()  # type: ignore[misc]
        hf.do(lambda tx, ended=ended: promote.dependents(tx, ended, limit=1000))  # type: ignore[misc]
    assert counts(hf, run.id, "each") == {"DONE": 10_000}
    manual.run_all()
    assert run.result(timeout=1) == sum(range(10_000))
    assert hf.verify() == []


def claim_value(claim: ClaimedRun) -> int:
    return int(json_text.load(claim.args)["value"])
