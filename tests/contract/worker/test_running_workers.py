"""Running workers, with real clocks and threads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from tests.contract.helpers.waiting import PATIENCE, ended
from tests.postgres import PostgresServer
from tests.waiting import wait_for

from holdfast import Context, Holdfast, Retry, RunFailed, Snapshot
from holdfast.worker.loop import WorkerLoop

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("P1", "S3")
def test_runs_execute_in_the_background_while_the_caller_continues(live: Holdfast) -> None:
    go = threading.Event()

    @live.job(name="slow")
    def slow(number: int) -> int:
        assert go.wait(PATIENCE)
        return number

    @live.job(name="asynchronous")
    async def asynchronous(number: int) -> int:
        await asyncio.sleep(0)
        return -number

    with live.worker(concurrency=4):
        runs = [slow.submit(number) for number in range(10)] + [asynchronous.submit(number) for number in range(10)]
        assert runs[0].refresh().state in ("queued", "running"), "submit must not wait for the work"
        go.set()
        assert [run.result(timeout=PATIENCE) for run in runs] == [*range(10), *(-n for n in range(10))]
    assert live.verify() == []


@pytest.mark.contract("P1", "Q9", "S3")
def test_a_worker_never_runs_more_than_its_concurrency(live: Holdfast) -> None:
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
    with live.worker(concurrency=3):
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

    with live.worker(concurrency=4), live.worker(concurrency=4):
        runs = [work.submit("ab"[number % 2], number) for number in range(20)]
        for run in runs:
            run.result(timeout=PATIENCE)
    assert overlaps == []
    assert order == {"a": list(range(0, 20, 2)), "b": list(range(1, 20, 2))}
    assert live.verify() == []


@pytest.mark.contract("P10", "P11")
def test_a_claim_that_meets_a_locked_database_is_logged_recorded_and_repeated(
    url: str, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Another connection holds the lock that a claim needs: no run is lost or fails, and the wait is recorded."""
    caplog.set_level(logging.WARNING, logger="holdfast.worker")
    with Holdfast(url, poll_interval=0.05, lease=3, busy_timeout=0.1) as hf:
        started, go = threading.Event(), threading.Event()

        @hf.job(name="work")
        def work() -> str:
            started.set()
            assert go.wait(PATIENCE)
            return "done"

        runs = work.submit_many([{}] * 4)
        worker = hf.worker(concurrency=1)
        worker.start()
        assert started.wait(PATIENCE)
        with contextlib.closing(database.connect()) as other:
            database.lock_ready(other)
            go.set()  # the run ends: now the worker must finish it and claim the next
            wait_for(
                lambda: [one for one in caplog.messages if one.startswith("worker: ")]
            )  # logged while the lock is still held
            other.execute("rollback")
        states = [ended(run).state for run in runs]
        wait_for(lambda: database.all("select run_id from holdfast_events where kind = 'DATABASE_BUSY'"))
        worker.stop()

        assert states == ["succeeded"] * 4
        assert hf.verify() == []


@pytest.mark.contract("S3")
def test_failure_hooks_are_called_for_failures_and_their_errors_do_no_harm(live: Holdfast) -> None:
    reported: list[tuple[str, str]] = []

    @live.job(name="work", max_attempts=2, retry=Retry(delay=timedelta(0)))
    def work(fail: bool) -> None:
        if fail:
            raise ValueError("no good")

    @live.on_failure
    def broken(run: Snapshot) -> None:
        raise RuntimeError("the hook itself")

    @live.on_failure
    def report(run: Snapshot) -> None:
        reported.append((run.id, run.state))

    with live.worker():
        bad, good = work.submit(True), work.submit(False)
        assert (ended(bad).state, ended(good).state) == ("failed", "succeeded")
        wait_for(lambda: reported)
        assert ended(work.submit(False)).state == "succeeded"
    assert reported == [(bad.id, "failed")]


@pytest.mark.contract("P11")
def test_logs_and_progress_are_stored_with_the_run_and_redacted(live: Holdfast) -> None:
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
    with live.worker():
        runs = [work.submit(), other.submit()]
        for run in runs:
            run.result(timeout=PATIENCE)
    logs = [[e.data["message"] for e in run.timeline() if e.kind == "LOG"] for run in runs]
    assert logs == [["begin password=[redacted]", "in a library"], ["in the loop"]]
    progress = [event.data for event in runs[0].timeline() if event.kind == "PROGRESS"]
    assert progress == [{"done": 1, "total": 2, "note": "half"}, {"done": 2, "total": 2, "note": ""}]


@pytest.mark.parametrize("isolation", ["thread", "async"])
def test_the_last_progress_of_a_failed_run_is_stored(live: Holdfast, isolation: str) -> None:
    def work(ctx: Context) -> None:
        for done in range(1, 8):  # each too soon after the previous one
            ctx.progress(done)
        raise ValueError("enough")

    async def awork(ctx: Context) -> None:
        work(ctx)

    job: Any = live.job(name="work")(work if isolation == "thread" else awork)
    with live.worker():
        run = job.submit()
        with pytest.raises(RunFailed):
            run.result(timeout=PATIENCE)
    assert [event.data["done"] for event in run.timeline() if event.kind == "PROGRESS"] == [1, 7]


@pytest.mark.contract("P6", "S3")
def test_steps_of_jobs_in_threads_and_in_the_event_loop_are_stored(live: Holdfast) -> None:
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
        if ctx.run.claim == 1:
            raise ValueError
        return value

    with live.worker():
        runs = [thread.submit(), loop.submit()]
        assert [run.result(timeout=PATIENCE) for run in runs] == [42, 42]
    assert sorted(calls) == ["double", "double", "treble"]
    assert "STEP_RETRIED" in [event.kind for event in runs[0].timeline()]


@pytest.mark.contract("S3")
def test_one_result_that_cannot_be_stored_does_not_fail_its_batch(live: Holdfast) -> None:
    @live.job(name="work")
    def work(number: int) -> Any:
        return object() if number % 5 == 0 else number

    runs = work.submit_many([{"number": number} for number in range(30)])
    with live.worker(concurrency=16):
        states = [ended(run).state for run in runs]
    assert states == ["failed" if number % 5 == 0 else "succeeded" for number in range(30)]


@pytest.fixture
def begins(live: Holdfast, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times at which transactions, or statements outside of one, began."""
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


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times at which the turns of a worker's loop began."""
    times: list[float] = []
    real = WorkerLoop.turn

    def turn(loop: WorkerLoop) -> None:
        times.append(time.monotonic())
        real(loop)

    monkeypatch.setattr(WorkerLoop, "turn", turn)
    return times


@pytest.mark.contract("P9")
def test_an_idle_worker_queries_once_in_a_poll_interval(
    live: Holdfast, begins: list[float], turns: list[float]
) -> None:
    @live.job(name="work")
    def work() -> None: ...

    with live.worker():
        work.submit().result(timeout=PATIENCE)
        time.sleep(0.5)
        begins.clear()
        turns.clear()
        since = time.monotonic()
        wait_for(lambda: len(begins) >= 15)
        ticks = (time.monotonic() - since) / live.settings.poll_interval.total_seconds()
        asked, turned = len(begins), len(turns)
    assert asked <= ticks * 1.5 + 5
    assert turned <= ticks * 1.5 + 5


@pytest.mark.contract("P9")
def test_the_poll_interval_is_a_second_by_default(sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:
        assert hf.settings.poll_interval == timedelta(seconds=1)


@pytest.mark.contract("P9", "S3")
def test_a_submission_wakes_the_worker_before_its_poll_interval(url: str) -> None:
    # The poll interval is longer than this test waits, so only a notification can start a run in time.
    with Holdfast(url, poll_interval=2 * PATIENCE, lease=6 * PATIENCE) as hf, Holdfast(url) as elsewhere:
        jobs = []
        for one in (hf, elsewhere):

            @one.job(name="work")
            def work() -> int:
                return 1

            jobs.append(work)
        with hf.worker():
            jobs[0].submit().result(timeout=PATIENCE)
            for job in jobs:  # the worker's own Holdfast, then one whose commits must be announced to it
                run = job.submit()
                wait_for(lambda run=run: run.refresh().snapshot.ended)  # type: ignore[misc]


@pytest.mark.contract("S3", "X4")
def test_results_survive_a_database_that_is_read_only_for_a_moment(postgres: PostgresServer, postgres_url: str) -> None:
    with (
        Holdfast(postgres_url, poll_interval=0.05, lease=20) as hf,
        psycopg.connect(postgres.url, autocommit=True) as admin,
    ):
        begun, go = threading.Event(), threading.Event()

        @hf.job(name="work")
        def work() -> int:
            begun.set()
            go.wait(60)
            return 42

        run = work.submit()
        with hf.worker():
            assert begun.wait(60)
            database = postgres_url.rpartition("/")[2]
            admin.execute(f"alter database {database} set default_transaction_read_only = on")
            others = (
                "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = %s"
            )
            admin.execute(others, [database])
            go.set()
            threading.Event().wait(0.5)
            admin.execute("set default_transaction_read_only = off")
            admin.execute(f"alter database {database} set default_transaction_read_only = off")
            admin.execute(others, [database])
            assert run.result(timeout=60) == 42


def test_a_task_that_raises_system_exit_does_not_stop_the_event_loop(live: Holdfast) -> None:
    @live.job(name="ending")
    async def ending() -> None:
        async def inner() -> None:
            raise SystemExit(3)

        await asyncio.sleep(0)
        await asyncio.create_task(inner())

    @live.job(name="calm")
    async def calm() -> int:
        return 1

    with live.worker():
        with pytest.raises(RunFailed):
            ending.submit().result(timeout=60)
        assert calm.submit().result(timeout=60) == 1
