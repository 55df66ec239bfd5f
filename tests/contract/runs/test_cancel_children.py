"""Children are cancelled with a failed or cancelled parent; keys and full queues do not block a child."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.listing import runs_of

from holdfast import Context, Holdfast
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.parametrize("place", ["waits", "leases"])
def test_cancelling_a_run_cancels_its_children_and_their_children(
    hf: Holdfast, manual: Manual, double: Any, database: Database, place: str
) -> None:
    @hf.job(name="middle")
    def middle(ctx: Context) -> Any:
        return ctx.gather(*(ctx.submit_child(double, number) for number in range(3)))

    @hf.job(name="top")
    def top(ctx: Context) -> Any:
        children = [ctx.submit_child(middle), ctx.submit_child(double, 9)]
        if place == "leases":
            run.cancel(reason="enough")
            return None if hf.snapshot(run.id).cancel_requested_at is None else ctx.gather(*children)
        return ctx.gather(*children)

    run = top.submit()
    worker = manual.worker()
    worker.work(worker.claim()[0])
    if place == "waits":
        worker.work(worker.claim()[0])
        [running] = worker.claim()
        assert run.cancel(reason="enough") == "cancelled"
        manual.orchestrate()
        assert worker.renew(running).cancelled
        worker.work(running)
    manual.orchestrate()
    manual.run_all()
    states = {(one.job, one.state) for one in runs_of(hf) if one.id != run.id}
    assert run.refresh().state == "cancelled"
    assert states <= {("middle", "cancelled"), ("double", "cancelled"), ("double", "succeeded")}
    assert ("middle", "cancelled") in states
    assert database.count("child_cancellations") == database.count("dependencies") == 0
    assert any("enough" in str(one.error) for one in runs_of(hf, job="double"))
    assert hf.verify() == []


def test_a_failed_run_cancels_its_unfinished_children(hf: Holdfast, manual: Manual, double: Any) -> None:
    @hf.job(name="broken")
    def broken(ctx: Context) -> None:
        ctx.submit_child(double.using(delay=1000), 1)
        raise ValueError("no")

    broken.submit()
    manual.run_all()
    assert [one.state for one in runs_of(hf, job="double")] == ["cancelled"]


def test_a_run_that_succeeds_leaves_its_children_alone(hf: Holdfast, manual: Manual, double: Any) -> None:
    hf.job(name="careless")(_careless(double)).submit()
    manual.run_all()
    assert [one.state for one in runs_of(hf, job="double")] == ["succeeded"]


def _careless(double: Any) -> Any:
    def careless(ctx: Context) -> None:
        ctx.submit_child(double, 1)

    return careless


@pytest.mark.parametrize(("key_order", "passes"), [("due", True), ("strict", False)])
def test_a_run_waiting_for_children_frees_its_key_unless_the_order_is_strict(
    hf: Holdfast, manual: Manual, double: Any, key_order: str, passes: bool
) -> None:
    @hf.job(name="keyed", key="document", key_order=key_order)
    def keyed(ctx: Context, document: str, wait: bool) -> int:
        return sum(ctx.gather(ctx.submit_child(double.using(queue="slow"), 1))) if wait else 0

    first, second = keyed.submit("d", True), keyed.submit("d", False)
    worker = manual.worker()
    worker.work(worker.claim()[0])
    manual.orchestrate()
    assert bool(worker.claim(limit=1)) == passes
    if not passes:
        assert "keeps" in " ".join(first.why().reasons)
        manual.run_all()
        assert (first.result(timeout=1), second.result(timeout=1)) == (2, 0)
    assert hf.verify() == []


@pytest.mark.parametrize("kind", ["job", "pipeline"])
def test_a_full_queue_refuses_no_child(hf: Holdfast, manual: Manual, kind: str) -> None:
    pipeline = hf.pipeline("one")
    pipeline.stage(name="only")(lambda: 1)
    child = pipeline if kind == "pipeline" else hf.job(name="work")(lambda: 1)

    @hf.job(name="busy")
    def busy(ctx: Context) -> list[int]:
        return ctx.gather(ctx.submit_child(child))

    hf.queue("default", max_queued=1)
    run = busy.submit()
    manual.run_all()
    assert run.result(timeout=1) == [1]
    assert hf.verify() == []


def test_a_run_that_keeps_its_key_does_not_wait_for_a_child_of_the_same_key(hf: Holdfast, manual: Manual) -> None:
    child = hf.job(name="child", key="{name}")(lambda name: name)

    @hf.job(name="keeper", key="{name}", key_order="strict")
    def keeper(ctx: Context, name: str, others: list[str]) -> list[str]:
        return ctx.gather(*[ctx.submit_child(child, other) for other in others])

    stuck, fine = keeper.submit("a", ["b", "a"]), keeper.submit("c", ["d"])
    manual.run_all()
    assert fine.result(timeout=1) == ["d"]
    assert "child 2 can't start before this run releases key a" in str(stuck.refresh().snapshot.error)
    assert {one.state for one in runs_of(hf) if one.parent_id == stuck.id} == {"cancelled"}
