"""Draining: a worker that an operator asks to end claims no more, finishes what it has, and is gone."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from tests.contract.alive import register
from tests.contract.patience import PATIENCE, until

from holdfast import Holdfast, WorkerNotFound
from holdfast.orchestrator.loop import read_pulse
from holdfast.testing import FakeClock
from holdfast.values.workers import why_unserved


def test_a_live_worker_is_asked_once_and_the_first_time_counts(hf: Holdfast, clock: FakeClock) -> None:
    register(hf, "worker-1")
    register(hf, "worker-2")
    asked_at = hf.clock.now()
    assert hf.workers.drain("worker-1", by="ada").drain_at == asked_at
    clock.advance(timedelta(seconds=1))

    assert hf.workers.drain("worker-1").drain_at == asked_at
    [operation] = hf.operations()
    assert (operation.by, operation.action, operation.what) == ("ada", "drain", {"worker": "worker-1"})
    assert [(one.id, one.claims) for one in hf.workers.list()] == [("worker-1", False), ("worker-2", True)]


def test_no_one_drains_a_worker_that_is_not_alive(hf: Holdfast, clock: FakeClock) -> None:
    register(hf, "worker-1")
    clock.advance(hf.settings.lease)
    for name in ("worker-1", "no-one", "x" * 300, "a\u202eb"):
        with pytest.raises(WorkerNotFound, match="no live worker"):
            hf.workers.drain(name)


def test_only_the_worker_that_was_asked_hears_of_it(hf: Holdfast) -> None:
    register(hf, "worker-1")
    register(hf, "worker-2")
    hf.workers.drain("worker-1")

    def heard(name: str) -> bool:
        return hf.read(lambda tx: read_pulse(tx, queues=["default"], jobs=["work"], holder=name)).drains

    assert [heard(name) for name in ("worker-1", "worker-2", "no-one")] == [True, False, False]


def test_a_run_that_only_a_draining_worker_could_start_says_so(hf: Holdfast) -> None:
    work = hf.job(name="work")(lambda: None)
    run = work.submit()
    register(hf, "worker-1")
    hf.workers.drain("worker-1")

    said = ("worker-1, which could start it, is about to end and claims no more: start another worker",)
    assert hf.why(run).reasons == said
    alive = hf.workers.list()
    assert why_unserved(alive, "default") == "no live worker serves queue default, but one that is about to end"


def test_it_finishes_what_it_has_and_leaves_the_rest_to_others(live: Holdfast) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @live.job(name="work")
    def work() -> str:
        begun.set()
        assert go_on.wait(PATIENCE)
        return "done"

    first, second = work.submit(), work.submit()
    worker = live.worker(concurrency=1)
    worker.start()
    try:
        assert begun.wait(PATIENCE)
        [task] = live.workers.tasks()
        assert (task.run_id, task.job, task.holder, task.attempt) == (first.id, "work", worker.id, 1)
        live.workers.drain(worker.id)
        until(lambda: worker.drained)
    finally:
        go_on.set()
        ended = worker.join(PATIENCE)

    assert (ended, worker.drained, worker.alive) == ("drained", True, False)
    assert (first.state, second.state) == ("succeeded", "queued")
    assert live.workers.list() == []
    assert live.workers.tasks() == []
