"""Working: real workers with real clocks, where threads are the promise."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Context, Holdfast, HoldfastError, Retry, Run, RunFailed, Snapshot, Worker, WorkerExists, workers
from holdfast.testing import Manual
from holdfast.worker import locks

if TYPE_CHECKING:
    from tests.conftest import Database

PATIENCE = 40.0


def until(what: Callable[[], Any], *, patience: float = PATIENCE) -> Any:
    """Wait until something is so, and say what it is."""
    give_up_at = time.monotonic() + patience
    while not (found := what()):
        assert time.monotonic() < give_up_at, "it did not happen in time"
        time.sleep(0.01)
    return found


def ended(run: Run[Any]) -> Snapshot:
    with contextlib.suppress(RunFailed):
        run.result(timeout=PATIENCE)
    return run.snapshot


@pytest.mark.contract("P1", "S3")
def test_runs_are_done_in_the_background_while_the_caller_goes_on(live: Holdfast) -> None:
    go = threading.Event()

    @live.job(name="slow")
    def slow(number: int) -> int:
        assert go.wait(PATIENCE)
        return number

    @live.job(name="asynchronous")
    async def asynchronous(number: int) -> int:
        await asyncio.sleep(0)
        return -number

    with Worker(live, concurrency=4):
        runs = [slow.submit(number) for number in range(10)] + [asynchronous.submit(number) for number in range(10)]
        assert runs[0].refresh().state in ("queued", "running"), "submit waited for the work"
        go.set()
        assert [run.result(timeout=PATIENCE) for run in runs] == [*range(10), *(-n for n in range(10))]
    assert live.verify() == []


@pytest.mark.contract("P1", "Q9", "S3")
def test_never_more_runs_at_once_than_places(live: Holdfast) -> None:
    inside, most = 0, 0
    lock = threading.Lock()

    @live.job(name="work")
    def work() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.002)
        with lock:
            inside -= 1

    runs = work.submit_many([{}] * 60)
    with Worker(live, concurrency=3):
        for run in runs:
            run.result(timeout=PATIENCE)
    assert most <= 3


@pytest.mark.contract("P2", "P3")
def test_runs_of_one_key_never_overlap_in_two_workers(live: Holdfast) -> None:
    inside: set[str] = set()
    overlaps: list[str] = []
    order: dict[str, list[int]] = {"a": [], "b": []}

    @live.job(name="work", key="{key}")
    def work(key: str, number: int) -> None:
        if key in inside:
            overlaps.append(key)
        inside.add(key)
        order[key].append(number)
        time.sleep(0.005)
        inside.discard(key)

    with Worker(live, concurrency=4), Worker(live, concurrency=4):
        runs = [work.submit("ab"[number % 2], number) for number in range(20)]
        for run in runs:
            run.result(timeout=PATIENCE)
    assert overlaps == []
    assert order == {"a": list(range(0, 20, 2)), "b": list(range(1, 20, 2))}
    assert live.verify() == []


@pytest.mark.contract("P10", "P11")
def test_a_start_that_meets_a_lock_is_logged_recorded_and_tried_again(
    url: str, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Someone else holds the lock that a claim needs: nothing is lost, no one fails, and it can be read later."""
    caplog.set_level(logging.WARNING, logger="holdfast.worker")
    with Holdfast(url, tick=0.05, lease=3, busy_timeout=0.1) as hf:
        started, go = threading.Event(), threading.Event()

        @hf.job(name="work")
        def work() -> str:
            started.set()
            assert go.wait(PATIENCE)
            return "done"

        runs = work.submit_many([{}] * 4)
        worker = Worker(hf, concurrency=1)
        worker.start()
        assert started.wait(PATIENCE)
        with contextlib.closing(database.connect()) as other:
            database.lock_ready(other)
            go.set()  # its one place is free: now it must finish, and claim
            until(lambda: [one for one in caplog.messages if one.startswith("worker: ")])  # at once, not afterwards
            other.execute("rollback")
        states = [ended(run).state for run in runs]
        until(lambda: database.all("select run_id from holdfast_events where kind = 'SCHEDULER_CONTENTION'"))
        worker.stop()

        assert states == ["succeeded"] * 4
        assert hf.verify() == []


@pytest.mark.contract("P7", "Q13")
@pytest.mark.parametrize("kind", ["thread", "async", "thread that lingers"])
def test_a_run_over_its_window_is_timed_out_by_its_worker(live: Holdfast, kind: str) -> None:
    let_go = threading.Event()
    told: list[str] = []

    def thread(ctx: Context) -> str:
        if kind == "thread":
            while not ctx.cancelled:
                time.sleep(0.005)
            told.append("cancelled")
            ctx.check()
        let_go.wait(PATIENCE)
        try:
            ctx.step("late", lambda: "must not be kept")
        except HoldfastError as error:
            told.append(error.code)
            raise
        return "too late"

    async def asynchronous(ctx: Context) -> str:
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise
        return "too late"

    function: Any = asynchronous if kind == "async" else thread
    work = live.job(name="work", timeout=0.15, max_attempts=3)(function)
    with Worker(live):
        run = work.submit()
        seen = ended(run)
        let_go.set()
        until(lambda: told)

    assert (seen.state, seen.failure_type, seen.tries) == ("timed_out", "TIMED_OUT", 1)
    assert "over its window of 0:00:00.15" in str(seen.error)
    assert run.refresh().snapshot == seen
    kinds = [event.kind for event in run.story()]
    assert "STEP_FINISHED" not in kinds
    assert kinds[-1] == "RUN_TIMED_OUT"
    assert live.verify() == []


@pytest.mark.contract("X4", "P7")
def test_a_timeout_may_be_tried_again(live: Holdfast) -> None:
    @live.job(name="work", timeout=0.15, on_timeout="retry", max_attempts=3, retry=Retry(delay=timedelta(0)))
    def work(ctx: Context) -> str:
        if ctx.run.tries < 3:
            while not ctx.cancelled:
                time.sleep(0.005)
            ctx.check()
        return f"try {ctx.run.tries}"

    with Worker(live):
        run = work.submit()
        assert run.result(timeout=PATIENCE) == "try 3"
    assert [event.kind for event in run.story()].count("RUN_RETRIED") == 2


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
    with Worker(live):
        run = work.submit()
        assert started.wait(PATIENCE)
        assert run.cancel(reason="enough") == "running"
        seen = ended(run)
        let_go.set()

    assert (seen.state, seen.failure_type) == ("cancelled", "CANCELLED")
    assert str(seen.error).startswith("enough")
    assert [event.kind for event in run.story()][-2:] == ["CANCEL_REQUESTED", "RUN_CANCELLED"]


@pytest.mark.contract("L4", "L7")
@pytest.mark.parametrize("kind", ["thread", "async"])
def test_code_that_blocks_past_the_lease_never_costs_it(url: str, kind: str) -> None:
    """A blocked event loop or thread: the lease is renewed elsewhere."""

    def thread() -> str:
        time.sleep(1.8)
        return "done"

    async def asynchronous() -> str:
        time.sleep(1.8)
        return "done"

    with Holdfast(url, tick=0.1, lease=1) as hf:
        function: Any = asynchronous if kind == "async" else thread
        work = hf.job(name="work")(function)
        with Worker(hf), Worker(hf):
            run = work.submit()
            assert run.result(timeout=PATIENCE) == "done"
        assert (run.snapshot.attempt, run.snapshot.takeovers) == (1, 0)


@pytest.mark.contract("L6", "L7", "S3")
def test_an_idle_worker_takes_over_what_a_lost_one_left(url: str, database: Database) -> None:
    """It has nothing in hand, and is alive all the same: it beats, so it may judge."""
    with Holdfast(url, tick=0.1, lease=1) as hf:

        @hf.job(name="work", key="{key}")
        def work(key: str) -> str:
            return "done"

        @hf.job(name="unknown")
        def unknown() -> None: ...

        run, follower = work.submit("a"), work.submit("a")
        [claim] = Manual(hf).worker("lost").claim()
        assert claim.lease.run_id == run.id
        with Worker(hf) as worker:
            assert run.result(timeout=PATIENCE) == "done"
            assert follower.result(timeout=PATIENCE) == "done"
            time.sleep(1.5)
            assert [one.id for one in hf.read(workers.live)] == [worker.id]
        assert (run.snapshot.attempt, run.snapshot.takeovers) == (2, 1)
        assert hf.read(workers.live) == []
        assert hf.verify() == []


@pytest.mark.contract("L7", "L5")
def test_work_stops_by_itself_before_a_lease_that_can_not_be_renewed_runs_out(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_at: list[datetime] = []
    with Holdfast(url, tick=0.1, lease=3) as hf:

        @hf.job(name="work")
        def work(ctx: Context) -> None:
            if ctx.attempt == 1:
                while not ctx.cancelled:
                    time.sleep(0.005)
                stopped_at.append(hf.clock.now())
                ctx.check()

        worker = Worker(hf)
        worker.start()
        monkeypatch.setattr(worker._heartbeat, "beat", lambda: None)  # the network is gone
        run = work.submit()
        expires_at = until(lambda: run.refresh().snapshot.expires_at)
        until(lambda: stopped_at)
        assert stopped_at[0] < expires_at, "it ran on after someone else might have claimed it"
        monkeypatch.undo()
        assert run.result(timeout=PATIENCE) is None
        worker.stop()
        assert run.snapshot.attempt == 2


@pytest.mark.contract("S5")
def test_a_stop_lets_running_work_finish_and_claims_no_more(live: Holdfast, database: Database) -> None:
    started, go = threading.Event(), threading.Event()

    @live.job(name="work")
    def work() -> str:
        started.set()
        assert go.wait(PATIENCE)
        return "finished"

    first = work.submit()
    worker = Worker(live, concurrency=1)
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
def test_what_does_not_finish_within_the_grace_is_handed_back_unused(
    live: Holdfast, database: Database, kind: str
) -> None:
    started, let_go = threading.Event(), threading.Event()

    def thread(ctx: Context) -> str:
        if ctx.attempt == 1:
            started.set()
            let_go.wait(PATIENCE)
        return "done"

    async def asynchronous(ctx: Context) -> str:
        if ctx.attempt == 1:
            started.set()
            await asyncio.sleep(PATIENCE)
        return "done"

    function: Any = asynchronous if kind == "async" else thread
    work = live.job(name="work", on_crash="fail")(function)
    run = work.submit()
    worker = Worker(live)
    worker.start()
    assert started.wait(PATIENCE)

    assert worker.stop(grace=timedelta(milliseconds=50)) == "handed_back"

    seen = run.refresh().snapshot
    assert (seen.place, seen.attempt, seen.tries, seen.takeovers) == ("ready", 1, 0, 0)
    assert database.count("leases") == database.count("workers") == 0
    let_go.set()
    with Worker(live, drain=True) as next_worker:
        assert run.result(timeout=PATIENCE) == "done"
        next_worker.join(timeout=PATIENCE)
    assert run.snapshot.tries == 1
    assert live.verify() == []


@pytest.mark.contract("S5")
def test_a_draining_worker_does_all_that_can_be_done_now_and_stops_by_itself(live: Holdfast) -> None:
    @live.job(name="work", key="{key}")
    def work(key: str, number: int) -> int:
        return number

    runs = [work.submit("ab"[number % 2], number) for number in range(10)]
    runs.append(work.using(after=runs[:3]).submit("c", 10))
    later = work.using(delay=3600).submit("d", 11)
    worker = Worker(live, drain=True)
    worker.start()
    assert worker.join(timeout=PATIENCE) == "drained"
    assert [run.result(timeout=0) for run in runs] == list(range(11))
    assert later.refresh().state == "queued"


@pytest.mark.contract("J2")
def test_a_second_exclusive_worker_refuses_and_names_the_first(url: str) -> None:
    with Holdfast(url, tick=0.1, lease=1) as hf:
        with Worker(hf, exclusive="scheduler") as first:
            with pytest.raises(WorkerExists, match="scheduler") as caught:
                Worker(hf, exclusive="scheduler").start()
            assert first.id in str(caught.value)
            assert caught.value.code == "worker_exists"
            with Worker(hf, exclusive="another"):
                pass
        with Worker(hf, exclusive="scheduler"):
            pass


@pytest.mark.contract("J2")
def test_an_exclusive_worker_takes_over_from_one_that_is_silent(url: str, database: Database) -> None:
    with Holdfast(url, tick=0.1, lease=1) as hf:
        silent = Worker(hf, exclusive="scheduler")
        locks.register(hf, silent)  # its process died right after
        started = time.monotonic()
        with Worker(hf, exclusive="scheduler") as successor:
            assert time.monotonic() - started < 8, "it waits for one lease at most, not for ever"
            assert [one.id for one in hf.read(workers.live)] == [successor.id]


@pytest.mark.contract("J2")
def test_an_exclusive_worker_that_was_replaced_starts_nothing_more(url: str, database: Database) -> None:
    with Holdfast(url, tick=0.1, lease=1) as hf:

        @hf.job(name="work")
        def work() -> str:
            return "done"

        hf.queues.pause("default")
        replaced = Worker(hf, exclusive="scheduler")
        replaced.start()
        database.run("update holdfast_workers set id = 'another'")
        hf.queues.resume("default")
        run = work.submit()
        until(lambda: not replaced.alive)
        with pytest.raises(WorkerExists):
            replaced.join()
        assert run.refresh().state == "queued"


@pytest.mark.contract("P5")
def test_a_solo_process_fails_at_start_up_what_a_crash_left_running(url: str, database: Database) -> None:
    with Holdfast(url, tick=0.1, lease=1, solo=True) as crashed:

        @crashed.job(name="work", key="{name}")
        def work(name: str) -> None: ...

        orphans = [work.submit(name) for name in "abc"]
        waiting = work.submit("a")
        assert work.options.policy.on_crash == "fail"
        assert len(Manual(crashed).worker("crashed").claim(limit=3)) == 3

    with Holdfast(url, tick=0.1, lease=1, solo=True) as hf:

        @hf.job(name="work", key="{name}")
        def again(name: str) -> str:
            return name

        with Worker(hf):
            # At start-up, not after a lease: they are over before the worker has begun.
            seen = [hf.snapshot(run.id) for run in orphans]
            assert [(one.state, one.failure_type) for one in seen] == [("failed", "PROCESS_TERMINATED")] * 3
            assert hf.get(waiting.id).result(timeout=PATIENCE) == "a"
            with pytest.raises(WorkerExists):
                Worker(hf).start()
        assert hf.verify() == []


@pytest.mark.contract("S3")
def test_failure_hooks_are_told_of_failures_and_can_do_no_harm(live: Holdfast) -> None:
    told: list[tuple[str, str]] = []

    @live.job(name="work", max_attempts=2, retry=Retry(delay=timedelta(0)))
    def work(fail: bool) -> None:
        if fail:
            raise ValueError("no good")

    @live.on_failure
    def broken(run: Snapshot) -> None:
        raise RuntimeError("the hook itself")

    @live.on_failure
    def tell(run: Snapshot) -> None:
        told.append((run.id, run.state))

    with Worker(live):
        bad, good = work.submit(True), work.submit(False)
        assert (ended(bad).state, ended(good).state) == ("failed", "succeeded")
        until(lambda: told)
        assert ended(work.submit(False)).state == "succeeded"
    assert told == [(bad.id, "failed")]


@pytest.mark.contract("P11")
def test_logs_and_progress_of_a_run_are_kept_with_it_redacted(live: Holdfast) -> None:
    elsewhere = logging.getLogger("a.library")
    elsewhere.setLevel(logging.INFO)

    @live.job(name="work")
    def work(ctx: Context) -> None:
        ctx.log.warning("begin password=hunter2secret")
        elsewhere.info("in a library")
        ctx.progress(1, 2, "half")
        ctx.progress(2, 2)

    @live.job(name="other")
    async def other(ctx: Context) -> None:
        elsewhere.info("in the loop")

    elsewhere.info("before any run")
    with Worker(live):
        runs = [work.submit(), other.submit()]
        for run in runs:
            run.result(timeout=PATIENCE)
    logs = [[e.data["message"] for e in run.story() if e.kind == "LOG"] for run in runs]
    assert logs == [["begin password=[redacted]", "in a library"], ["in the loop"]]
    progress = [event.data for event in runs[0].story() if event.kind == "PROGRESS"]
    assert progress == [{"done": 1, "total": 2, "note": "half"}, {"done": 2, "total": 2, "note": ""}]


@pytest.mark.contract("P6", "S3")
def test_steps_of_real_workers_are_remembered_through_threads_and_loops(live: Holdfast) -> None:
    calls: list[str] = []

    def double(number: int) -> int:
        calls.append("double")
        if len(calls) == 1:
            raise ConnectionError
        return 2 * number

    async def treble(number: int) -> int:
        calls.append("treble")
        return 3 * number

    @live.job(name="thread", retry=Retry(delay=timedelta(milliseconds=1)))
    def thread(ctx: Context) -> int:
        return ctx.step("double", double, 21)

    @live.job(name="loop", max_attempts=2, retry=Retry(delay=timedelta(milliseconds=1)))
    async def loop(ctx: Context) -> int:
        value = await ctx.step("treble", treble, 14)
        if ctx.attempt == 1:
            raise ValueError
        return value

    with Worker(live):
        runs = [thread.submit(), loop.submit()]
        assert [run.result(timeout=PATIENCE) for run in runs] == [42, 42]
    assert sorted(calls) == ["double", "double", "treble"]
    assert "STEP_RETRIED" in [event.kind for event in runs[0].story()]


@pytest.mark.contract("S3")
def test_one_unstorable_result_does_not_spoil_its_batch(live: Holdfast) -> None:
    @live.job(name="work")
    def work(number: int) -> Any:
        return object() if number % 5 == 0 else number

    runs = work.submit_many([{"number": number} for number in range(30)])
    with Worker(live, concurrency=16):
        states = [ended(run).state for run in runs]
    assert states == ["failed" if number % 5 == 0 else "succeeded" for number in range(30)]


@pytest.fixture
def begins(live: Holdfast, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When each transaction, or statement that is one by itself, began."""
    times: list[float] = []
    dialect = live.store.dialect

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def begun(*args: Any, **kwargs: Any) -> Any:
            times.append(time.monotonic())
            return real(*args, **kwargs)

        return begun

    monkeypatch.setattr(dialect, "begin", counted(dialect.begin))
    monkeypatch.setattr(dialect, "alone", counted(dialect.alone))
    return times


@pytest.mark.contract("P9")
def test_an_idle_worker_asks_once_a_tick_and_never_spins(live: Holdfast, begins: list[float]) -> None:
    @live.job(name="work")
    def work() -> None: ...

    with Worker(live):
        work.submit().result(timeout=PATIENCE)
        time.sleep(0.5)
        begins.clear()
        time.sleep(1.5)
        asked = len(begins)
    ticks = 1.5 / live.settings.tick.total_seconds()
    assert 1 <= asked <= ticks * 1.5 + 5


@pytest.mark.contract("P9", "S3")
def test_a_submission_wakes_the_worker_before_its_tick(url: str) -> None:
    with Holdfast(url, tick=5, lease=15) as hf, Holdfast(url) as elsewhere:
        jobs = []
        for one in (hf, elsewhere):

            @one.job(name="work")
            def work() -> int:
                return 1

            jobs.append(work)
        with Worker(hf):
            jobs[0].submit().result(timeout=PATIENCE)
            for job in jobs:  # the same process, and one that has to be heard
                started = time.monotonic()
                run = job.submit()
                until(lambda run=run: run.refresh().snapshot.ended)  # type: ignore[misc]
                assert time.monotonic() - started < 4
