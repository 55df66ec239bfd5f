"""A stage is checked where it is declared: what it comes after, what it asks for, what it is called."""

from __future__ import annotations

import pytest

from holdfast import Holdfast, InvalidPolicy, Pipeline
from holdfast.testing.manual import Manual


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


def test_a_pipeline_called_as_a_function_is_refused(hf: Holdfast, diamond: Pipeline) -> None:
    with pytest.raises(InvalidPolicy, match="submit"):
        diamond(number=1)
    assert diamond.stages["a"](number=1) == 2, "a stage is a function like any other"
