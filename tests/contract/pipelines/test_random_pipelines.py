"""Random pipelines: stages run in order and every pipeline ends, whatever is split or fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.listing import runs_of

from holdfast import Holdfast
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from pathlib import Path


@given(
    shape=st.lists(
        st.tuples(st.booleans(), st.sets(st.integers(0, 5), max_size=3), st.booleans()), min_size=1, max_size=6
    ),
    segments=st.integers(0, 3),
    fails=st.integers(-1, 5),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_graph_of_stages_runs_each_stage_once_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    shape: list[tuple[bool, set[int], bool]],
    segments: int,
    fails: int,
) -> None:
    """`shape` has for each stage: whether it is split, which earlier stages it comes after, and whether it may fail."""
    folder: Path = tmp_path_factory.mktemp("dag")
    done: list[tuple[str, Any]] = []
    with Holdfast(f"sqlite:///{folder / 'work.db'}", clock=FakeClock(), ids=Ids(seed=1), synchronous="normal") as hf:
        pipeline, stages, before = hf.pipeline("any"), list[Any](), list[set[str]]()
        split = set[int]()
        for number, (is_split, named, tolerant) in enumerate(shape):
            after = [stages[one] for one in sorted(named) if one < number]
            if is_split := is_split and bool(after):
                split.add(number)
            before.append(set().union(*(before[one] | {f"s{one}"} for one in named if one < number)))

            def work(part: Any = None, *, number: int = number) -> list[int]:
                done.append((f"s{number}", part))
                if number == fails:
                    raise ValueError("it fails")
                return list(range(segments))

            options = {"each": "part"} if is_split else {}
            on_error = "continue" if tolerant else "stop"
            stages.append(
                pipeline.stage(name=f"s{number}", after=after, on_error=on_error, **options)(_one(work, is_split))  # type: ignore[arg-type]
            )
        run = pipeline.submit()
        manual = Manual(hf)
        manual.run_all()
        assert run.refresh().snapshot.ended
        if fails < 0 or fails >= len(shape):
            assert run.state == "succeeded", _failures(hf)
        assert len(done) == len(set(done)), "each stage and each segment must run once"
        began = list(dict.fromkeys(name for name, _ in done))
        empty = {f"s{number}" for number in split if not segments}
        if not any(tolerant for _, _, tolerant in shape):
            for place, name in enumerate(began):
                assert before[int(name[1:])] - empty <= set(began[:place])
        assert hf.verify() == []
        assert hf.read(lambda tx: tx.all("find_ready_queues")) == []


def _one(work: Any, is_split: bool) -> Any:
    def whole() -> Any:
        return work()

    def each(part: Any) -> Any:
        return work(part)

    return each if is_split else whole


def _failures(hf: Holdfast) -> set[str | None]:
    return {one.failure_type for one in runs_of(hf)}
