"""Draining: the worker claims no more runs, finishes those it has, and stops."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from tests.contract.helpers.waiting import PATIENCE
from tests.contract.helpers.workers import register
from tests.waiting import wait_for

from holdfast import (
    Holdfast,
    WorkerNotFound,
)
from holdfast.orchestrator.loop import read_pulse
from holdfast.testing import FakeClock, Manual
from holdfast.values.workers import why_unserved


def test_a_second_drain_request_keeps_the_time_of_the_first(hf: Holdfast, clock: FakeClock) -> None:
    register(hf, "worker-1")
    register(hf, "worker-2")
    asked_at = hf.clock.now()
    assert hf.workers.drain("worker-1", by="ada").drain_requested_at == asked_at
    clock.advance(timedelta(seconds=1))

    assert hf.workers.drain("worker-1").drain_requested_at == asked_at
    [operation] = hf.audit_log()
    assert (operation.by, operation.action, operation.details) == ("ada", "drain", {"worker": "worker-1"})
    assert [(one.id, one.claims) for one in hf.workers.list()] == [("worker-1", False), ("worker-2", True)]


def test_draining_a_lost_worker_is_refused(hf: Holdfast, clock: FakeClock) -> None:
    register(hf, "worker-1")
    clock.advance(hf.settings.lease)
    for name in ("worker-1", "no-one", "x" * 300, "a\u202eb"):
        with pytest.raises(WorkerNotFound, match="no live worker"):
            hf.workers.drain(name)


def test_a_drain_request_affects_only_its_worker(hf: Holdfast) -> None:
    register(hf, "worker-1")
    register(hf, "worker-2")
    hf.workers.drain("worker-1")

    def is_told_to_drain(name: str) -> bool:
        return hf.read(lambda tx: read_pulse(tx, queues=["default"], jobs=["work"], holder=name)).drains

    assert [is_told_to_drain(name) for name in ("worker-1", "worker-2", "no-one")] == [True, False, False]


def test_why_says_that_only_a_draining_worker_could_start_a_run(hf: Holdfast) -> None:
    work = hf.job(name="work")(lambda: None)
    run = work.submit()
    register(hf, "worker-1")
    hf.workers.drain("worker-1")

    expected = ("worker-1 could start it, but is shutting down; start another worker",)
    assert hf.why(run).reasons == expected
    alive = hf.workers.list()
    assert why_unserved(alive, "default") == "no live worker serves queue default, except one that is shutting down"


def test_a_draining_worker_finishes_its_runs_and_claims_no_more(live: Holdfast) -> None:
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
        [task] = live.workers.active_runs()
        assert (task.run_id, task.job, task.holder, task.claim) == (first.id, "work", worker.id, 1)
        live.workers.drain(worker.id)
        wait_for(lambda: worker.drained)
    finally:
        go_on.set()
        ended = worker.join(PATIENCE)

    assert (ended, worker.drained, worker.alive) == ("drained", True, False)
    assert (first.state, second.state) == ("succeeded", "queued")
    assert live.workers.list() == []
    assert live.workers.active_runs() == []


@pytest.mark.contract("S3", "S5")
def test_a_worker_with_drain_also_executes_the_runs_of_a_lost_worker(url: str) -> None:
    with Holdfast(url, poll_interval=0.05, lease=3) as hf:

        @hf.job(name="work")
        def work() -> int:
            return 1

        run = work.submit()
        lost = Manual(hf).worker("lost")
        [claim] = lost.claim()
        hf.do(lambda tx: tx.run("renew_leases", rows=[_expired(claim, tx.now)], holder="lost"))
        worker = hf.worker(drain=True)
        worker.start()
        assert worker.join(timeout=60) == "drained"
        assert run.result(timeout=1) == 1


def _expired(claim: Any, now: Any) -> dict[str, Any]:
    return {"run_id": claim.lease.run_id, "claim": claim.lease.claim, "expires_at": now - timedelta(seconds=1)}
