"""Retention and reruns: results that a rerun uses are kept, and partly deleted ones are not reused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.listing import runs_of

from holdfast import Holdfast, Run, StageNotDone
from holdfast.pipelines.rerun import rerun_pipeline
from holdfast.runs import retention
from holdfast.testing import Manual


@pytest.fixture
def run(hf: Holdfast, manual: Manual) -> Run[Any]:
    """A pipeline that has ended: listed → each, of three segments → last."""
    pipeline = hf.pipeline("split")
    listed = pipeline.stage(name="listed")(lambda: [1, 2, 3])
    each = pipeline.stage(name="each", after=listed, each="value")(lambda value: value)
    pipeline.stage(name="last", after=each)(lambda segments: sum(segments))
    run = pipeline.submit()
    manual.run_all()
    return run


def segments(hf: Holdfast) -> list[str]:
    return [one.id for one in runs_of(hf) if one.kind == "segment"]


@pytest.mark.contract("P8")
def test_a_running_prune_keeps_the_segments_that_a_rerun_reuses(hf: Holdfast, manual: Manual, run: Run[Any]) -> None:
    going = segments(hf)
    assert len(hf.do(lambda tx: retention.held(tx, going))) == 3
    again = hf.pipelines.rerun(run.id, from_stage="last")
    assert hf.do(lambda tx: retention.held(tx, going)) == []
    manual.run_all()
    assert again.result(timeout=1) == 6


@pytest.mark.contract("P8")
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_segments_are_not_deleted_while_a_rerun_is_submitted(hf: Holdfast, run: Run[Any]) -> None:
    going = segments(hf)
    with hf.store.transaction() as tx:
        rerun_pipeline(tx, run.id, from_stage="last", allowed=lambda job, policy: None)
        assert hf.do(lambda other: retention.remove(other, going)) == 0


@pytest.mark.contract("P8", "S4")
def test_a_stage_with_deleted_segments_is_not_reused(hf: Holdfast, run: Run[Any]) -> None:
    hf.do(lambda tx: retention.remove(tx, segments(hf)[:1]))
    before = len(runs_of(hf))
    with pytest.raises(StageNotDone, match="pruned"):
        hf.pipelines.rerun(run.id, from_stage="last")
    assert len(runs_of(hf)) == before
