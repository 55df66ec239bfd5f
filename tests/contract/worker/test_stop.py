"""Stopping runs and workers: timeouts, cancels and shutdowns."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.waiting import PATIENCE, ended
from tests.waiting import wait_for

from holdfast import Context, Holdfast, HoldfastError, Retry

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("P7", "Q13")
@pytest.mark.parametrize("kind", ["thread", "async", "thread that lingers"])
def test_a_run_past_its_timeout_is_stopped_by_its_worker(live: Holdfast, kind: str) -> None:
    let_go = threading.Event()
    seen_by_job: list[str] = []

    def thread(ctx: Context) -> str:
        if kind == "thread":
            while not ctx.cancelled:
                time.sleep(0.005)
            seen_by_job.append("cancelled")
            ctx.check()
        let_go.wait(PATIENCE)
        try:
            ctx.step("late", lambda: "must not be kept")
        except HoldfastError as error:
            seen_by_job.append(error.code)
            raise
        return "too late"

    async def asynchronous(ctx: Context) -> str:
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            seen_by_job.append("cancelled")
            raise
        return "too late"

    function: Any = asynchronous if kind == "async" else thread
    work = live.job(name="work", timeout=0.15, max_attempts=3)(function)
    with live.worker():
        run = work.submit()
        seen = ended(run)
        let_go.set()
        wait_for(lambda: seen_by_job)

    assert (seen.state, seen.failure_type, seen.attempt) == ("timed_out", "TIMED_OUT", 1)
    stops = "the function stopped" if kind == "async" else "the function may still be running"
    assert str(seen.error).startswith(f"Timed out after 0.15 s; {stops}")
    assert kind == "async" or 'isolation="process"' in str(seen.error)
    assert run.refresh().snapshot == seen
    kinds = [event.kind for event in run.timeline()]
    assert "STEP_FINISHED" not in kinds
    assert kinds[-1] == "RUN_TIMED_OUT"
    assert live.verify() == []


@pytest.mark.contract("X4", "P7")
def test_a_timed_out_run_can_be_retried(live: Holdfast) -> None:
    @live.job(name="work", timeout=0.15, on_timeout="retry", max_attempts=3, retry=Retry(delay=timedelta(0)))
    def work(ctx: Context) -> str:
        if ctx.run.attempt < 3:
            while not ctx.cancelled:
                time.sleep(0.005)
            ctx.check()
        return f"try {ctx.run.attempt}"

    with live.worker():
        run = work.submit()
        assert run.result(timeout=PATIENCE) == "try 3"
    assert [event.kind for event in run.timeline()].count("RUN_RETRIED") == 2


@pytest.mark.contract("Q15")
@pytest.mark.parametrize("kind", ["thread", "async", "thread that lingers"])
def test_cancelling_reaches_running_work(live: Holdfast, kind: str) -> None:
    started, let_go = threading.Event(), threading.Event()

    def thread(ctx: Context) -> None:
        started.set()
        if kind == "thread":
            while not ctx.cancelled:
                time.sleep(0.005)
            ctx.check()
        let_go.wait(PATIENCE)

    async def asynchronous(ctx: Context) -> None:
        started.set()
        await asyncio.sleep(PATIENCE)

    function: Any = asynchronous if kind == "async" else thread
    work = live.job(name="work", max_attempts=3)(function)
    with live.worker():
        run = work.submit()
        assert started.wait(PATIENCE)
        assert run.cancel(reason="enough") == "running"
        seen = ended(run)
        let_go.set()

    assert (seen.state, seen.failure_type) == ("cancelled", "CANCELLED")
    assert str(seen.error).startswith("enough")
    assert [event.kind for event in run.timeline()][-2:] == ["CANCEL_REQUESTED", "RUN_CANCELLED"]


@pytest.mark.contract("S5")
def test_a_stop_lets_running_work_finish_and_claims_no_more(live: Holdfast, database: Database) -> None:
    started, go = threading.Event(), threading.Event()

    @live.job(name="work")
    def work() -> str:
        started.set()
        assert go.wait(PATIENCE)
        return "finished"

    first = work.submit()
    worker = live.worker(concurrency=1)
    worker.start()
    assert started.wait(PATIENCE)
    second = work.submit()
    worker.request_stop()
    go.set()

    assert worker.stop() == "drained"
    assert (first.refresh().state, second.refresh().state) == ("succeeded", "queued")
    assert database.count("leases") == database.count("workers") == 0


@pytest.mark.contract("S5")
@pytest.mark.parametrize("kind", ["thread", "async"])
def test_runs_that_do_not_finish_within_the_grace_period_are_released(
    live: Holdfast, database: Database, kind: str
) -> None:
    started, let_go = threading.Event(), threading.Event()

    def thread(ctx: Context) -> str:
        if ctx.run.claim == 1:
            started.set()
            let_go.wait(PATIENCE)
        return "done"

    async def asynchronous(ctx: Context) -> str:
        if ctx.run.claim == 1:
            started.set()
            await asyncio.sleep(PATIENCE)
        return "done"

    function: Any = asynchronous if kind == "async" else thread
    work = live.job(name="work", on_crash="fail")(function)
    run = work.submit()
    worker = live.worker()
    worker.start()
    assert started.wait(PATIENCE)

    assert worker.stop(grace=timedelta(milliseconds=50)) == "released"

    seen = run.refresh().snapshot
    assert (seen.place, seen.claim, seen.attempt, seen.takeovers) == ("ready", 1, 0, 0)
    assert database.count("leases") == database.count("workers") == 0
    let_go.set()
    with live.worker(drain=True) as next_worker:
        assert run.result(timeout=PATIENCE) == "done"
        next_worker.join(timeout=PATIENCE)
    assert run.snapshot.attempt == 1
    assert live.verify() == []


@pytest.mark.contract("S5")
def test_a_worker_with_drain_runs_everything_that_is_ready_and_stops(live: Holdfast) -> None:
    @live.job(name="work", key="{key}")
    def work(key: str, number: int) -> int:
        return number

    runs = [work.submit("ab"[number % 2], number) for number in range(10)]
    runs.append(work.using(depends_on=runs[:3]).submit("c", 10))
    later = work.using(delay=3600).submit("d", 11)
    worker = live.worker(drain=True)
    worker.start()
    assert worker.join(timeout=PATIENCE) == "drained"
    assert [run.result(timeout=0) for run in runs] == list(range(11))
    assert later.refresh().state == "queued"


@pytest.mark.contract("S5")
def test_a_worker_that_shuts_down_claims_no_slots(live: Holdfast) -> None:
    began, let_go = threading.Event(), threading.Event()

    @live.job(name="work")
    def work() -> None:
        began.set()
        let_go.wait(PATIENCE)

    @live.schedule(every=1, name="ingest")
    def ingest() -> None: ...

    def claimed() -> int:
        return len(live.schedules.slots("ingest", next=0))

    worker = live.worker()
    worker.start()
    work.submit()
    assert began.wait(PATIENCE)
    wait_for(claimed)
    worker.request_stop()
    begun = claimed()
    # Its orchestrator continues to promote runs: when this run is ready, two more slots have come due.
    later = work.using(delay=2.5).submit()
    wait_for(lambda: later.refresh().snapshot.place == "ready")
    stopped_with = claimed()
    let_go.set()
    worker.join()

    # One slot may have been claimed while the stop was requested.
    assert stopped_with - begun <= 1
