"""Segments: a stage is split by the result of another; each segment is a run, which is retried on its own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.helpers.segments import counts, split

from holdfast import Context, Holdfast, InvalidArguments, Retry
from holdfast.testing import FakeClock, Manual


@pytest.mark.contract("L1", "L9")
def test_a_stage_is_split_into_segments_and_the_next_starts_after_the_last_segment(
    hf: Holdfast, manual: Manual
) -> None:
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
    assert counts(hf, run.id, "then") == {"READY": 1, "NEW": 2}, (
        "a segment waits only for its own segment of the stage before"
    )

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


def test_a_stage_without_segments_is_done_at_once(hf: Holdfast, manual: Manual) -> None:
    run = split(hf).submit(values=[])
    manual.run_all()
    assert run.result(timeout=1) == [[], []]
    assert hf.verify() == []


@pytest.mark.contract("L9")
def test_only_the_failed_segment_is_retried(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
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
    manual.promote()
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


@pytest.mark.contract("S4")
@pytest.mark.parametrize("values", ["text", b"bytes", {"": 1}, {3: 1}, {"a ": 1}])
def test_segments_are_checked_when_they_are_returned(hf: Holdfast, values: Any) -> None:
    pipeline = hf.pipeline("checked")

    @pipeline.stage()
    def listed(ctx: Context) -> Any:
        return ctx.segments(values)

    with pytest.raises(InvalidArguments):
        listed()


def test_a_worker_runs_all_segments(live: Holdfast) -> None:
    pipeline = split(live, on_error="continue")
    with live.worker(concurrency=8):
        values = [number - 3 for number in range(60)]
        assert pipeline.submit(values=values).result(timeout=60)[0] == [2 * value for value in values if value >= 0]
    assert live.verify() == []
