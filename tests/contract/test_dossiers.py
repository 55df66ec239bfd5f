"""Dossiers: what a page about one run shows, on every database, and no more of it than a page can hold."""

from __future__ import annotations

import pytest

from holdfast import Context, Holdfast, RunNotFound
from holdfast.operate import run_details
from holdfast.testing import FakeClock, Manual


def test_a_run_knows_its_kin(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="leaf")
    def leaf(number: int) -> int:
        return number

    @hf.job(name="tree")
    def tree(ctx: Context) -> None:
        ctx.gather(*(ctx.submit_child(leaf, number) for number in range(3)))

    first = leaf.submit(number=1)
    manual.run_all()
    needy = tree.using(after=[first]).submit()
    manual.run_all()
    repeat = hf.again(needy)
    found = hf.dossier(needy)
    assert [(one.relation, one.job, one.state) for one in found.kin] == [
        ("repeat", "tree", "queued"),
        ("needed", "leaf", "succeeded"),
        *[("child", "leaf", "succeeded")] * 3,
    ]
    assert found.kin[0].id == repeat.id
    [repeated] = [one for one in hf.dossier(repeat).kin if one.relation == "repeated"]
    assert repeated.id == needy.id
    [parent] = [one for one in hf.dossier(found.kin[2].id).kin if one.relation == "parent"]
    assert parent.id == needy.id


def test_it_has_the_newest_events_in_order_and_the_steps(
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
    whole = hf.dossier(run)
    assert [step.name for step in whole.steps] == [f"step {number}" for number in range(12)]
    assert not whole.earlier
    assert not whole.more_steps
    monkeypatch.setattr(run_details, "EVENTS", 5)
    monkeypatch.setattr(run_details, "STEPS", 4)
    some = hf.dossier(run)
    assert [event.data["note"] for _, event in some.recorded] == [f"line {number}" for number in range(7, 12)]
    assert (some.earlier, some.more_steps, len(some.steps)) == (True, True, 4)
    assert some.recorded == whole.recorded[-5:]
    assert hf.recorded(run, after=some.recorded[1][0]) == list(some.recorded[2:])
    assert some.last == whole.last


def test_what_belongs_to_it_is_bounded(hf: Holdfast, manual: Manual, monkeypatch: pytest.MonkeyPatch) -> None:
    @hf.job(name="again")
    def again() -> None: ...

    run = again.submit()
    for _ in range(6):
        hf.again(run)
    monkeypatch.setattr(run_details, "KIN", 4)
    found = hf.dossier(run)
    assert (len(found.kin), found.more_kin) == (4, True)


def test_a_run_that_is_not_there_has_none(hf: Holdfast) -> None:
    with pytest.raises(RunNotFound):
        hf.dossier("nothing")
