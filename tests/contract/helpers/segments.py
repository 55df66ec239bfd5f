"""A pipeline with segments, and the counts of its segments by state."""

from __future__ import annotations

from typing import Any

from holdfast import Context, Holdfast, Pipeline


def counts(hf: Holdfast, run_id: str, stage: str) -> dict[str, int]:
    [found] = [one for one in hf.pipelines.show(run_id).stages if one.name == stage]
    return {state: count for state, count in found.segments.items() if count}


def split(hf: Holdfast, **options: Any) -> Pipeline:
    """Stages `listed` → `each` (a segment fails if its value is below zero) → `then` (a segment each) → `last`."""
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
