"""Skipped stages: a stage that never ran stays NEW, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.segments import counts, split
from tests.contract.helpers.stages import states

from holdfast import Holdfast, Pipeline, RunFailed
from holdfast.testing import Manual
from holdfast.values.pipelines import StageInfo, in_words

if TYPE_CHECKING:
    from tests.fixtures import Database

BELOW = "ValueError: -1 is below zero"


def stage(hf: Holdfast, run: Any, name: str) -> StageInfo:
    [found] = [one for one in hf.pipelines.show(run.id).stages if one.name == name]
    return found


def check_nothing_waits(hf: Holdfast, database: Database) -> None:
    assert [database.count(table) for table in ("waits", "ready", "dependencies", "child_cancellations", "leases")] == [
        0
    ] * 5
    assert hf.verify() == []


@pytest.mark.contract("L1", "L2", "L9")
def test_stages_after_a_failed_stage_stay_new_and_have_a_reason(
    hf: Holdfast, manual: Manual, diamond: Pipeline, database: Database
) -> None:
    run = diamond.submit(number=1, fail=True)
    manual.run_all()
    assert states(hf, run.id) == {"a": "DONE", "b": "ERROR", "c": "NEW", "d": "NEW"}
    d = stage(hf, run, "d")
    assert (d.ended, d.errors, d.reason) == (True, {"skipped": 1}, "stage b failed: ValueError: b can't")
    assert in_words(d) == ["skipped", "because stage b failed: ValueError: b can't"]
    assert stage(hf, run, "b").reason is None
    skipped = hf.snapshot(d.run_id)
    assert (skipped.state, skipped.failure_type, skipped.error) == ("cancelled", "SKIPPED", d.reason)
    assert (run.refresh().state, run.snapshot.failure_type) == ("failed", "DEPENDENCY_FAILED")
    assert [one.stage for one in hf.pipelines.show(run.id).failures] == ["b"]
    check_nothing_waits(hf, database)


@pytest.mark.contract("L1", "L9")
def test_a_stage_that_was_ready_when_another_failed_stays_new(
    hf: Holdfast, manual: Manual, diamond: Pipeline, database: Database
) -> None:
    run, worker = diamond.submit(number=1, fail=True), manual.worker()
    for _ in range(2):
        manual.orchestrate()
        worker.work(worker.claim()[0])
    assert states(hf, run.id) == {"a": "DONE", "b": "ERROR", "c": "READY", "d": "NEW"}
    manual.orchestrate()
    assert states(hf, run.id) == {"a": "DONE", "b": "ERROR", "c": "NEW", "d": "NEW"}
    assert "stage b failed: ValueError: b can't" in str(stage(hf, run, "c").reason)
    check_nothing_waits(hf, database)


@pytest.mark.contract("L1", "L9")
def test_segments_that_never_started_and_the_stages_after_them_stay_new(
    hf: Holdfast, manual: Manual, database: Database
) -> None:
    run, worker = split(hf).submit(values=[1, -1, 3]), manual.worker()
    manual.orchestrate()
    worker.work(worker.claim()[0])
    manual.orchestrate()
    good, bad = worker.claim(limit=2)
    for claim in (good, bad):
        worker.work(claim)
    manual.orchestrate()

    assert states(hf, run.id) == {"listed": "DONE", "each": "ERROR", "then": "NEW", "last": "NEW"}
    assert counts(hf, run.id, "each") == {"DONE": 1, "ERROR": 1, "NEW": 1}
    assert stage(hf, run, "each").errors == {"failed": 1, "skipped": 1}
    assert in_words(stage(hf, run, "each")) == ["1 failed", "1 skipped"]
    assert counts(hf, run.id, "then") == {"NEW": 3}
    *_, never = hf.pipelines.segments(run, "each")
    assert (never.state, never.error_kind, never.claim) == ("NEW", "skipped", 0)
    assert BELOW in str(never.reason)
    for name in ("then", "last"):
        assert (stage(hf, run, name).ended, BELOW in str(stage(hf, run, name).reason)) == (True, True)
    check_nothing_waits(hf, database)


@pytest.mark.contract("L1")
def test_a_split_stage_is_in_error_only_if_one_of_its_segments_is(hf: Holdfast, manual: Manual) -> None:
    run = split(hf).submit(values=[1, -1])
    manual.run_all()
    assert counts(hf, run.id, "each") == {"DONE": 1, "ERROR": 1}
    assert counts(hf, run.id, "then") in ({"NEW": 2}, {"DONE": 1, "NEW": 1})
    assert states(hf, run.id) == {"listed": "DONE", "each": "ERROR", "then": "NEW", "last": "NEW"}


@pytest.mark.contract("L1")
def test_stages_that_never_ran_stay_new_when_their_pipeline_is_cancelled(
    hf: Holdfast, manual: Manual, diamond: Pipeline, database: Database
) -> None:
    run, worker = diamond.submit(number=1), manual.worker()
    manual.orchestrate()
    [claim] = worker.claim()
    run.cancel(reason="wrong number")
    manual.orchestrate()
    worker.work(claim)
    manual.orchestrate()
    assert states(hf, run.id) == {"a": "DONE", "b": "NEW", "c": "NEW", "d": "NEW"}
    assert "wrong number" in str(stage(hf, run, "d").reason)
    check_nothing_waits(hf, database)


@pytest.mark.contract("L1")
def test_a_first_stage_whose_dependency_failed_is_skipped_and_its_pipeline_fails(
    hf: Holdfast, manual: Manual, diamond: Pipeline, database: Database
) -> None:
    @hf.job(name="before")
    def before() -> None:
        raise OSError("no disk")

    needed = before.submit()
    run = diamond.using(depends_on=[needed]).submit(number=1)
    manual.run_all()
    assert set(states(hf, run.id).values()) == {"NEW"}
    reason = f"depends on run {needed.id} (before), which failed: OSError: no disk"
    assert stage(hf, run, "a").reason == reason
    with pytest.raises(RunFailed, match="stage a was skipped: depends on run"):
        run.result(timeout=1)
    check_nothing_waits(hf, database)
