"""Failed stages are retried, stop their pipeline or are tolerated; a cancel stops the whole pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.contract.helpers.stages import states

from holdfast import Holdfast, Pipeline, Retry, RunFailed
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("L9")
def test_a_failed_stage_is_in_error_until_the_orchestrator_makes_it_ready_again(
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


def test_a_failed_stage_stops_the_pipeline_and_cancels_what_has_not_started(
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
        "d": "NEW",
    }
    assert (info.run.state, info.run.failure_type) == ("failed", "DEPENDENCY_FAILED")
    assert info.run.error == "stage b failed: ValueError: b can't"
    assert worker.renew(c).cancelled, "running stages must be asked to stop"
    assert hf.verify() == []
    with pytest.raises(RunFailed):
        run.result(timeout=1)


def test_after_a_stage_that_may_fail_the_next_runs_without_its_result(hf: Holdfast, manual: Manual) -> None:
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
    manual.promote()
    worker = manual.worker()
    [claim] = worker.claim()
    assert run.cancel(reason="wrong number") == "cancelled"
    manual.orchestrate()

    assert worker.renew(claim).cancelled
    assert [hf.snapshot(stage.run_id).state for stage in hf.pipelines.show(run.id).stages[1:]] == ["cancelled"] * 3
    assert "wrong number" in str(hf.snapshot(hf.pipelines.show(run.id).stages[3].run_id).error)
    worker.work(claim)
    manual.orchestrate()
    assert database.count("child_cancellations") == 0
    assert database.count("waits") == database.count("ready") == database.count("dependencies") == 0
    assert hf.verify() == []
