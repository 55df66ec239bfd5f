"""Reruns: a pipeline can be rerun from any stage with its earlier results, even without its code."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Holdfast, InvalidArguments, InvalidPolicy, Pipeline, PipelineNotFound, StageNotDone
from holdfast.testing import FakeClock, Manual


def test_a_rerun_from_a_stage_reuses_the_earlier_results(hf: Holdfast, manual: Manual) -> None:
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


def test_a_rerun_reads_the_results_of_the_same_dependencies(hf: Holdfast, manual: Manual) -> None:
    before = hf.job(name="before")(lambda: "ready")
    needy = hf.pipeline("needy")

    @needy.stage()
    def first(ctx: Context) -> list[Any]:
        return list(ctx.dependencies)

    @needy.stage(after=first)
    def last(ctx: Context, first: list[str]) -> list[str]:
        return first

    run = needy.using(depends_on=[before.submit()]).submit()
    manual.run_all()
    again = [run.again(), hf.pipelines.rerun(run.id, from_stage="first"), hf.pipelines.rerun(run.id, from_stage="last")]
    manual.run_all()
    assert [one.result(timeout=1) for one in again] == [["ready"]] * 3


def test_a_pipeline_is_rerun_without_its_code(
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
    with pytest.raises(StageNotDone, match="stage b ended as failed"):
        hf.pipelines.rerun(run.id, from_stage="d")
    with pytest.raises(InvalidArguments, match="no stage 'z'; its stages are a, b, c, d"):
        hf.pipelines.rerun(run.id, from_stage="z")
    with pytest.raises(PipelineNotFound, match="is not a pipeline"):
        hf.pipelines.rerun(hf.pipelines.show(run.id).stages[0].run_id, from_stage="a")
    with pytest.raises(PipelineNotFound):
        hf.pipelines.show("nothing")
    with pytest.raises(InvalidPolicy, match="part of a pipeline"):
        hf.again(hf.pipelines.show(run.id).stages[0].run_id)
