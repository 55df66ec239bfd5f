"""Pages of segments: each segment once, with its run and its state, in order of number."""

from __future__ import annotations

import pytest
from tests.contract.helpers.segments import split

from holdfast import Holdfast, InvalidArguments, PipelineNotFound
from holdfast.testing import Manual


def test_pages_list_every_segment_once_in_order_of_number(hf: Holdfast, manual: Manual) -> None:
    run = split(hf).submit(values=[*range(12), -1])
    manual.run_all()

    names, after = [], ""
    while page := hf.pipelines.segments(run, "each", limit=5, after=after):
        names += [one.name for one in page]
        after = page[-1].name
    assert names == [str(number) for number in range(13)]

    found = {one.name: one for one in hf.pipelines.segments(run, "each")}
    assert (found["0"].state, found["0"].error_kind, found["0"].claim) == ("DONE", None, 1)
    assert (found["12"].state, found["12"].error_kind) == ("ERROR", "failed")
    assert hf.get(found["3"].run_id).snapshot.segment == "3"
    assert hf.pipelines.segments(run, "listed") == []


def test_named_segments_are_listed_with_short_names_first(hf: Holdfast, manual: Manual) -> None:
    run = split(hf).submit(values={"zoë": 1, "b": 2, "a'\"<": 3, "\U0001f600": 4})
    manual.promote()
    worker = manual.worker()
    worker.work(worker.claim()[0])
    manual.orchestrate()
    [first, *rest] = hf.pipelines.segments(run, "each")
    assert (first.name, first.state) in (("b", "READY"), ("\U0001f600", "READY"))
    assert {one.name for one in (first, *rest)} == {"zoë", "b", "a'\"<", "\U0001f600"}


def test_an_unknown_stage_or_pipeline_is_reported(hf: Holdfast) -> None:
    run = split(hf).submit(values=[1])
    with pytest.raises(InvalidArguments, match="the pipeline has no stage 'nothing'; its stages are listed, each"):
        hf.pipelines.segments(run, "nothing")
    with pytest.raises(PipelineNotFound):
        hf.pipelines.segments("0" * 26, "each")
