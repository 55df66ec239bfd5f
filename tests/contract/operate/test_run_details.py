"""Run details: the data for the page of a run, in a bounded amount, on every database."""

from __future__ import annotations

import pytest

from holdfast import Context, Holdfast, RunNotFound
from holdfast.operate import run_details
from holdfast.runs import events
from holdfast.testing import FakeClock, Manual


def test_run_details_list_related_runs(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="leaf")
    def leaf(number: int) -> int:
        return number

    @hf.job(name="tree")
    def tree(ctx: Context) -> None:
        ctx.gather(*(ctx.submit_child(leaf, number) for number in range(3)))

    first = leaf.submit(number=1)
    manual.run_all()
    dependent = tree.using(depends_on=[first]).submit()
    manual.run_all()
    repeat = hf.again(dependent)
    found = hf.run_details(dependent)
    assert [(one.relation, one.job, one.state) for one in found.related] == [
        ("repeat", "tree", "queued"),
        ("dependency", "leaf", "succeeded"),
        *[("child", "leaf", "succeeded")] * 3,
    ]
    assert found.related[0].id == repeat.id
    [repeated] = [one for one in hf.run_details(repeat).related if one.relation == "repeated"]
    assert repeated.id == dependent.id
    [parent] = [one for one in hf.run_details(found.related[2].id).related if one.relation == "parent"]
    assert parent.id == dependent.id


def test_run_details_have_the_newest_events_in_order_and_the_steps(
    hf: Holdfast, manual: Manual, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @hf.job(name="chatty")
    def chatty(ctx: Context) -> None:
        for number in range(12):
            ctx.step(f"step {number}", int, number)
            ctx.progress(number, 12, f"line {number}")
            clock.advance(1)

    run = chatty.submit()
    manual.run_all()
    whole = hf.run_details(run)
    assert [step.name for step in whole.steps] == [f"step {number}" for number in range(12)]
    assert not whole.earlier
    assert not whole.more_steps
    monkeypatch.setattr(run_details, "EVENTS", 5)
    monkeypatch.setattr(run_details, "STEPS", 4)
    some = hf.run_details(run)
    assert [event.data["note"] for _, event in some.recorded] == [f"line {number}" for number in range(7, 12)]
    assert (some.earlier, some.more_steps, len(some.steps)) == (True, True, 4)
    assert some.recorded == whole.recorded[-5:]
    assert hf.read(lambda tx: events.of(tx, run.id, after=some.recorded[1][0])) == list(some.recorded[2:])
    assert some.last == whole.last


def test_run_details_are_bounded(hf: Holdfast, manual: Manual, monkeypatch: pytest.MonkeyPatch) -> None:
    @hf.job(name="again")
    def again() -> None: ...

    run = again.submit()
    for _ in range(6):
        hf.again(run)
    monkeypatch.setattr(run_details, "RELATED", 4)
    found = hf.run_details(run)
    assert (len(found.related), found.more_related) == (4, True)


def test_an_unknown_run_has_no_details(hf: Holdfast) -> None:
    with pytest.raises(RunNotFound):
        hf.run_details("nothing")
