"""Failed segments stop the pipeline, unless the stage allows that many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.segments import counts, split
from tests.listing import runs_of

from holdfast import Holdfast
from holdfast.orchestrator import promote
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


def test_a_failed_segment_stops_the_pipeline(hf: Holdfast, manual: Manual, database: Database) -> None:
    run = split(hf).submit(values=[1, -1, 3, 4])
    manual.promote()
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
    assert counts(hf, run.id, "each") == {"RUNNING": 2, "ERROR": 1, "NEW": 1}
    assert counts(hf, run.id, "then") == {"NEW": 4}
    assert database.count("waits") == database.count("dependencies") == database.count("child_cancellations") == 0
    assert hf.verify() == []


def test_a_stage_with_on_error_continue_uses_the_segments_that_succeeded(hf: Holdfast, manual: Manual) -> None:
    run = split(hf, on_error="continue").submit(values=[1, -1, 3, -2])
    manual.run_all()
    assert run.result(timeout=1) == [[2, 6], ["1→2", "3→6"]]
    assert counts(hf, run.id, "each") == {"DONE": 2, "ERROR": 2}
    assert counts(hf, run.id, "then") == {"DONE": 2, "NEW": 2}, "the segments after failed ones are skipped, not failed"
    skipped = [one for one in runs_of(hf) if one.failure_type == "SKIPPED"]
    assert [(one.stage, one.segment, one.state) for one in reversed(skipped)] == [
        ("then", "1", "cancelled"),
        ("then", "3", "cancelled"),
    ]
    assert hf.verify() == []


def test_a_stage_after_a_failed_stage_does_not_complete_although_its_segments_are_done(
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
    manual.promote()
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
    for _ in range(2):  # the orchestrator is notified of the segments before the whole stages
        hf.do(lambda tx: promote.dependents(tx, [*ended, *_skipped(hf)], limit=100))
    assert hf.snapshot(whole).place == "waits"

    manual.run_all()
    assert (run.refresh().state, reached) == ("failed", [])
    assert (
        run.snapshot.error
        == "stage each failed: segment 0 failed: ZeroDivisionError: integer division or modulo by zero"
    )
    assert hf.verify() == []


def _skipped(hf: Holdfast) -> list[str]:
    return [one.id for one in runs_of(hf) if one.failure_type == "SKIPPED"]


@pytest.mark.parametrize(("values", "ended"), [([1, -1, 3], "succeeded"), ([1, -1, -3], "failed")])
def test_as_many_segments_may_fail_as_the_stage_allows(
    hf: Holdfast, manual: Manual, values: list[int], ended: str
) -> None:
    run = split(hf, allow_failures=1).submit(values=values)
    manual.run_all()
    assert run.refresh().state == ended
    assert hf.verify() == []


@pytest.mark.contract("S4")
@pytest.mark.parametrize("returned", [None, "text", 3, {"": 1}, {"x" * 201: 1}, {"a ": 1}])
def test_an_invalid_list_of_segments_fails_the_stage_with_a_reason(hf: Holdfast, manual: Manual, returned: Any) -> None:
    pipeline = hf.pipeline("wrong")

    @pipeline.stage()
    def listed() -> Any:
        return returned

    @pipeline.stage(after=listed, each="value")
    def each(value: int) -> None: ...

    run = pipeline.submit()
    manual.run_all()
    info = hf.pipelines.show(run.id)
    assert hf.snapshot(info.stages[1].run_id).failure_type == "INVALID_SEGMENTS"
    assert "stage listed" in str(info.run.error)
    assert hf.verify() == []
