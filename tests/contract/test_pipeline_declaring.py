"""A stage is checked where it is declared: what it comes after, what it asks for, what it is called."""

from __future__ import annotations

import pytest

from holdfast import Holdfast, InvalidPolicy, Pipeline
from holdfast.testing import Manual


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


def test_a_pipeline_called_as_a_function_is_refused(hf: Holdfast, diamond: Pipeline) -> None:
    with pytest.raises(InvalidPolicy, match="submit"):
        diamond(number=1)
    assert diamond.stages["a"](number=1) == 2, "a stage is a function like any other"
