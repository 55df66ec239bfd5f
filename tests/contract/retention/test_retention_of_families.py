"""Retention of families: parents and children are deleted together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.retention import DAY, REFERENCES, a_run, exists
from tests.listing import runs_of

from holdfast import Holdfast, Pruned
from holdfast.orchestrator import prune
from holdfast.runs import retention
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("P8")
def test_a_family_of_runs_is_deleted_together_after_its_retention_period(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    def family(**last: Any) -> list[str]:
        parent = a_run(hf)
        child = a_run(hf, parent_id=parent, stage="child", segment="1")
        return [parent, child, a_run(hf, parent_id=child, stage="child", segment="2", **last)]

    whole = family()
    late = family(due_at=clock.now() + 10 * DAY)
    waits = family(due_at=clock.now() + 900 * DAY)
    orphan = a_run(hf, parent_id="0" * 26, stage="child", segment="1")
    manual.run_all()
    clock.advance(10 * DAY)
    manual.run_all()
    clock.advance(21 * DAY)

    assert hf.prune().runs == 4
    assert {one: [exists(hf, run_id) for run_id in ids] for one, ids in {"whole": whole, "late": late}.items()} == {
        "whole": [False] * 3,
        "late": [True] * 3,
    }
    assert not exists(hf, orphan)
    clock.advance(10 * DAY)
    assert hf.prune().runs == 3, "the run that ended last decides for its family"
    assert all(exists(hf, run_id) for run_id in waits)


@pytest.mark.contract("P8")
def test_a_failed_run_keeps_its_family_for_the_retention_of_failed_runs(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    parent = a_run(hf)
    a_run(hf, parent_id=parent, stage="child", segment="1")
    hf.cancel(a_run(hf, parent_id=parent, stage="child", segment="2", due_at=clock.now() + DAY))
    manual.run_all()
    clock.advance(89 * DAY)
    assert hf.prune() == Pruned()
    clock.advance(2 * DAY)
    assert hf.prune().runs == 3


@pytest.mark.contract("P8")
@pytest.mark.parametrize("why", ["audit", "needed"])
def test_a_family_with_a_run_that_must_be_kept_is_kept(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, work: Any, why: str
) -> None:
    parent = a_run(hf)
    child = a_run(hf, parent_id=parent, stage="child", segment="1")
    manual.run_all()
    if why == "audit":
        database.run(f"update holdfast_runs set keep_forever = 1 where id = '{child}'")
    else:
        database.run(REFERENCES["a dependency"].format(id=child))
    clock.advance(400 * DAY)
    assert hf.prune() == Pruned()


@pytest.mark.contract("P8")
def test_a_large_family_is_deleted_in_several_transactions_with_its_root_last(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "RUNS", 3)
    head = a_run(hf)
    for number in range(7):
        a_run(hf, parent_id=head, stage="child", segment=str(number))
    manual.run_all()
    clock.advance(31 * DAY)
    limits = retention.limits(hf.settings, clock.now())
    seen = []
    for removed in prune.steps(hf.store, hf._artifact_store, limits, cursors={}):
        assert removed.runs <= 3
        seen.append((len(runs_of(hf)), exists(hf, head)))
    assert sorted(set(seen), reverse=True) == [(5, True), (2, True), (0, False)]


@pytest.mark.contract("P8", "L8")
def test_a_pipeline_is_kept_as_long_as_its_rerun(hf: Holdfast, manual: Manual, clock: FakeClock, work: Any) -> None:
    first = a_run(hf, kind="pipeline")
    manual.run_all()
    clock.advance(29 * DAY)
    second = a_run(hf, kind="pipeline", again_of=first)
    manual.run_all()
    clock.advance(10 * DAY)
    assert hf.prune() == Pruned()
    clock.advance(21 * DAY)
    assert hf.prune().runs + hf.prune().runs == 2
    assert not exists(hf, first)
    assert not exists(hf, second)
