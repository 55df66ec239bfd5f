"""Blocked event loop: only the job that blocks it is affected."""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.contract.helpers.waiting import PATIENCE, ended
from tests.waiting import wait_for

from holdfast import Context, Holdfast, Run
from holdfast.testing import FakeClock, Manual
from holdfast.values.events import Event
from holdfast.worker import event_loop
from holdfast.worker.event_loop import Blockage, Gate, Loop, Loops
from holdfast.worker.in_flight import RunInFlight

NEIGHBOURS = 8
MINUTE = timedelta(minutes=1)


@pytest.fixture
def let_go() -> Iterator[threading.Event]:
    """The event that blocking calls wait for; it is set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def blocked(run: Run[Any]) -> list[Event]:
    return [event for event in run.timeline() if event.kind == "LOOP_BLOCKED"]


def until_blocked(run: Run[Any]) -> Event:
    found: list[Event] = wait_for(lambda: blocked(run))
    return found[0]


def line_of(function: Callable[..., Any], call: str) -> str:
    """File and line of a call in a function."""
    lines, first = inspect.getsourcelines(function)
    [number] = [first + at for at, line in enumerate(lines) if call in line]
    return f"{inspect.getsourcefile(function)}:{number}"


@pytest.mark.contract("P7", "S3")
def test_runs_that_timed_out_behind_a_blocking_call_start_again_without_using_an_attempt(
    live: Holdfast, let_go: threading.Event
) -> None:
    begun: list[tuple[str, int]] = []
    went_on: list[tuple[str, int]] = []
    stopped: list[tuple[str, int]] = []
    blocking = threading.Event()

    @live.job(name="neighbour", timeout=3)
    async def neighbour(ctx: Context) -> int:
        this = (ctx.run.id, ctx.run.claim)
        begun.append(this)
        try:
            while not blocking.is_set():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            stopped.append(this)
            raise
        went_on.append(this)
        return ctx.run.claim

    async def block(ctx: Context) -> None:
        await asyncio.sleep(0)
        blocking.set()
        let_go.wait(PATIENCE)

    blocker = live.job(name="blocker", timeout=5)(block)
    neighbours = neighbour.submit_many([{}] * NEIGHBOURS)
    culprit = blocker.submit()
    with live.worker(concurrency=NEIGHBOURS + 1) as worker:
        # The neighbours end while the loop in which they began is still blocked.
        assert [run.result(timeout=PATIENCE) for run in neighbours] == [2] * NEIGHBOURS
        assert ended(culprit).state == "timed_out"
        let_go.set()
        wait_for(lambda: len(stopped) == NEIGHBOURS)
        assert worker.stop() == "drained", "released runs must not count as unfinished work of the shutdown"

    first = [(run.id, 1) for run in neighbours]
    assert sorted(stopped) == sorted(first)
    assert not set(first) & set(went_on), "a released attempt must not continue"
    assert all(begun.count(this) == 1 for this in begun)
    assert {run.refresh().snapshot.attempt for run in neighbours} == {1}
    where = line_of(block, "let_go.wait")
    [event] = blocked(culprit)
    assert event.data["where"] == where
    assert event.data["stack"][0] == f"{where} in block"
    assert where in str(culprit.snapshot.error)
    for run in neighbours:
        [released] = [event for event in run.timeline() if event.kind == "RUN_RELEASED"]
        assert released.data["reason"] == f"run {culprit.id} (blocker) blocks the event loop at {where}"
    assert live.verify() == []


@pytest.mark.contract("S3")
def test_a_released_run_does_not_continue_on_the_blocked_loop(live: Holdfast, let_go: threading.Event) -> None:
    """The loop has already scheduled its next step when another run blocks the loop."""
    steps: dict[int, int] = {1: 0, 2: 0}
    blocking = threading.Event()

    @live.job(name="restless", timeout=3)
    async def restless(ctx: Context) -> int:
        while ctx.run.claim == 1:
            steps[ctx.run.claim] += 1
            await asyncio.sleep(0)
        return ctx.run.claim

    @live.job(name="blocker", timeout=None)
    async def blocker() -> str:
        blocking.set()
        let_go.wait(PATIENCE)
        return "done"

    runs = restless.submit_many([{}] * 3)
    culprit = blocker.submit()
    with live.worker():
        assert blocking.wait(PATIENCE)
        taken = steps[1]
        wait_for(lambda: all(run.refresh().snapshot.attempt == 0 for run in runs))
        let_go.set()
        assert [run.result(timeout=PATIENCE) for run in runs] == [2, 2, 2]
        assert culprit.result(timeout=PATIENCE) == "done"
    assert steps[1] == taken


@pytest.mark.contract("P7", "S3")
def test_a_run_that_a_blocked_loop_never_began_is_released(
    live: Holdfast, let_go: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_loop, "BLOCKED_AFTER", 10 * PATIENCE)
    begun: list[int] = []
    blocking = threading.Event()

    @live.job(name="neighbour", timeout=2)
    async def neighbour(ctx: Context) -> int:
        begun.append(ctx.run.claim)
        return ctx.run.claim

    @live.job(name="blocker", timeout=None)
    async def blocker() -> None:
        blocking.set()
        let_go.wait(PATIENCE)

    with live.worker():
        culprit = blocker.submit()
        assert blocking.wait(PATIENCE)
        run = neighbour.submit()
        wait_for(lambda: run.refresh().snapshot.claim == 1 and run.snapshot.place == "ready")
        let_go.set()
        assert run.result(timeout=PATIENCE) == 2
        culprit.result(timeout=PATIENCE)
    assert begun == [2]


@pytest.mark.contract("S3")
def test_runs_with_time_left_continue_when_the_loop_responds_again(live: Holdfast, let_go: threading.Event) -> None:
    ticks: list[int] = []

    @live.job(name="neighbour")
    async def neighbour(ctx: Context) -> int:
        ticks.append(ctx.run.claim)
        while not let_go.is_set():
            await asyncio.sleep(0.01)
        return ctx.run.claim

    @live.job(name="blocker")
    async def blocker(ctx: Context) -> int:
        let_go.wait(PATIENCE)
        return ctx.run.claim

    with live.worker():
        runs = neighbour.submit_many([{}] * 3)
        wait_for(lambda: len(ticks) == 3)
        culprit = blocker.submit()
        until_blocked(culprit)
        let_go.set()
        assert [run.result(timeout=PATIENCE) for run in (*runs, culprit)] == [1, 1, 1, 1]
    assert len(blocked(culprit)) == 1
    assert not any(blocked(run) for run in runs)


@pytest.mark.contract("P7", "S3")
def test_a_run_that_lost_its_time_to_a_blocked_loop_is_not_timed_out(live: Holdfast, let_go: threading.Event) -> None:
    """The loop responds again before the deadline of the run, but most of the run's timeout has passed by then."""
    begun = threading.Event()

    @live.job(name="neighbour", timeout=4)
    async def neighbour(ctx: Context) -> int:
        begun.set()
        if ctx.run.claim == 1:
            await asyncio.sleep(PATIENCE)
        return ctx.run.claim

    @live.job(name="blocker")
    async def blocker() -> None:
        let_go.wait(PATIENCE)

    with live.worker():
        run = neighbour.submit()
        assert begun.wait(PATIENCE)
        until_blocked(blocker.submit())
        let_go.set()
        assert run.result(timeout=PATIENCE) == 2
    assert run.snapshot.attempt == 1


@pytest.mark.contract("P7")
def test_a_hanging_run_is_timed_out_even_if_another_blocked_the_loop_earlier(
    live: Holdfast, let_go: threading.Event
) -> None:
    @live.job(name="hanging", timeout=0.5)
    async def hanging() -> None:
        await asyncio.sleep(PATIENCE)

    @live.job(name="blocker")
    async def blocker() -> None:
        let_go.wait(PATIENCE)

    with live.worker():
        assert ended(hanging.submit()).state == "timed_out"
        culprit = blocker.submit()
        until_blocked(culprit)
        let_go.set()
        culprit.result(timeout=PATIENCE)
        assert ended(hanging.submit()).state == "timed_out"


@pytest.mark.contract("S3")
def test_a_worker_with_a_blocked_loop_leaves_async_runs_to_others(live: Holdfast, let_go: threading.Event) -> None:
    @live.job(name="quick", timeout=None)
    async def quick() -> None: ...

    @live.job(name="plain")
    def plain() -> str:
        return threading.current_thread().name

    @live.job(name="blocker", timeout=None)
    async def blocker() -> None:
        let_go.wait(PATIENCE)

    with live.worker() as stuck:
        culprit = blocker.submit()
        until_blocked(culprit)
        claimed = stuck.claimed
        waiting = quick.submit_many([{}] * 5)
        for _ in range(5):
            plain.submit().result(timeout=PATIENCE)
        assert stuck.claimed == claimed + 5
        assert {run.refresh().snapshot.place for run in waiting} == {"ready"}
        with live.worker():
            for run in waiting:
                run.result(timeout=PATIENCE)
        last = quick.submit()
        let_go.set()
        last.result(timeout=PATIENCE)
        culprit.result(timeout=PATIENCE)


@pytest.mark.contract("P11")
@pytest.mark.parametrize("how", ["task", "callback", "library"])
def test_the_event_names_the_run_whose_code_blocks(live: Holdfast, let_go: threading.Event, how: str) -> None:
    def call() -> None:
        threading.Event().wait(0) if let_go.is_set() else let_go.wait(PATIENCE)

    async def part() -> None:
        call()

    @live.job(name="neighbour")
    async def neighbour() -> None:
        while not let_go.is_set():
            await asyncio.sleep(0.01)

    @live.job(name="blocker")
    async def blocker() -> None:
        if how == "task":
            await asyncio.gather(part(), part())
        elif how == "callback":
            asyncio.get_running_loop().call_soon(call)
            await asyncio.sleep(0.1)
        else:
            call()

    with live.worker():
        neighbours = neighbour.submit_many([{}] * 2)
        culprit = blocker.submit()
        event = until_blocked(culprit)
        let_go.set()
        for run in (*neighbours, culprit):
            run.result(timeout=PATIENCE)
    assert event.data["where"] == line_of(call, "let_go.wait"), "the deepest line of the job's own file"
    assert event.data["stack"][-1].endswith(" in wait"), "the stack must include the blocking call"
    assert not any(blocked(run) for run in neighbours)


@pytest.mark.contract("S3")
def test_a_loop_blocked_for_a_lease_is_replaced_and_its_runs_start_again(url: str, let_go: threading.Event) -> None:
    began: list[tuple[str, int]] = []

    with Holdfast(url, poll_interval=0.05, lease=3, kill_grace=0.2) as hf:

        @hf.job(name="neighbour", timeout=None)
        async def neighbour(ctx: Context) -> int:
            began.append((ctx.run.id, ctx.run.claim))
            await asyncio.sleep(0.1)
            return ctx.run.claim

        @hf.job(name="once", timeout=None, on_shutdown="fail")
        async def once(ctx: Context) -> int:
            began.append((ctx.run.id, ctx.run.claim))
            await asyncio.sleep(0.1)
            return ctx.run.claim

        @hf.job(name="blocker", timeout=None)
        async def blocker(ctx: Context) -> int:
            let_go.wait(PATIENCE)
            return ctx.run.claim

        neighbours = neighbour.submit_many([{}] * 3)
        only = once.submit()
        culprit = blocker.submit()
        with hf.worker():
            assert [run.result(timeout=PATIENCE) for run in neighbours] == [2, 2, 2]
            later = neighbour.submit()
            assert later.result(timeout=PATIENCE) == 1, "new runs must have a new loop"
            assert (only.refresh().state, culprit.refresh().state) == ("running", "running")
            let_go.set()
            assert (only.result(timeout=PATIENCE), culprit.result(timeout=PATIENCE)) == (1, 1)
            wait_for(lambda: [t.name for t in threading.enumerate()].count("holdfast-loop") == 1)
        assert began.count((only.id, 1)) == 1
        assert hf.verify() == []


@pytest.mark.contract("S5")
def test_a_worker_with_a_blocked_loop_stops_within_its_grace_periods(live: Holdfast, let_go: threading.Event) -> None:
    @live.job(name="neighbour")
    async def neighbour() -> None:
        await asyncio.sleep(PATIENCE)

    @live.job(name="blocker")
    async def blocker() -> None:
        let_go.wait(PATIENCE)

    runs = [*neighbour.submit_many([{}] * 3), blocker.submit()]
    worker = live.worker()
    worker.start()
    until_blocked(runs[-1])
    since = time.monotonic()
    assert worker.stop(grace=timedelta(milliseconds=50)) == "released"
    assert time.monotonic() - since < PATIENCE / 2
    assert {(run.refresh().snapshot.place, run.snapshot.attempt) for run in runs} == {("ready", 0)}


@pytest.mark.contract("S3")
def test_time_in_which_the_monitor_did_not_run_is_not_blamed_on_a_run(
    hf: Holdfast, manual: Manual, clock: FakeClock, let_go: threading.Event
) -> None:
    @hf.job(name="blocker")
    async def blocker() -> None: ...

    blocker.submit()
    [claim] = manual.worker("a").claim()
    running = RunInFlight(claimed=claim, job=blocker, lease_until=math.inf, deadline=None)
    found: list[Blockage] = []
    blocking = threading.Event()

    async def work(loop: Loop) -> None:
        blocking.set()
        let_go.wait(PATIENCE)

    watched = Loops("loop", clock, give_up_after=MINUTE, on_block=found.append, on_change=lambda: None)
    watched.run(running, work)
    assert blocking.wait(PATIENCE)
    assert watched.check(clock.elapsed(), late=0) > clock.elapsed()
    clock.advance(0.2)
    watched.check(clock.elapsed(), late=0)
    clock.advance(20)
    watched.check(clock.elapsed(), late=19.5)
    assert not watched.blocked, "the loop may have had no time to respond"
    clock.advance(0.5)
    watched.check(clock.elapsed(), late=0)
    assert watched.blocked
    assert [one.blocker for one in found] == [running]
    let_go.set()
    wait_for(lambda: (watched.check(clock.elapsed(), late=0), not watched.blocked)[1])
    watched.close(wait=PATIENCE)


@pytest.mark.contract("S3")
def test_a_loop_with_too_many_short_steps_is_not_blocked(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    """The loop does not respond in time, but it counts as blocked only when a single step takes too long."""

    @hf.job(name="short")
    async def short() -> None: ...

    short.submit_many([{}] * 4)
    found: list[Blockage] = []
    watched = Loops("loop", clock, give_up_after=MINUTE, on_block=found.append, on_change=lambda: None)
    stepping, go_on = threading.Semaphore(0), threading.Semaphore(0)

    async def work(loop: Loop) -> None:
        stepping.release()
        assert go_on.acquire(timeout=PATIENCE)

    for claim in manual.worker("a").claim(limit=4):
        watched.run(RunInFlight(claimed=claim, job=short, lease_until=math.inf, deadline=None), work)
    assert stepping.acquire(timeout=PATIENCE)
    watched.check(clock.elapsed(), late=0)
    for _ in range(3):
        clock.advance(0.5)
        watched.check(clock.elapsed(), late=0)
        go_on.release()
        assert stepping.acquire(timeout=PATIENCE)
    assert found == []
    for _ in range(2):
        clock.advance(0.5)
        watched.check(clock.elapsed(), late=0)
    assert len(found) == 1, "the last step is long enough to block the loop"
    go_on.release()
    watched.close(wait=PATIENCE)


@pytest.mark.contract("S3")
@pytest.mark.parametrize("raises", [False, True])
def test_a_gate_passes_values_and_errors_and_cancels_once(raises: bool) -> None:
    gate = Gate()
    seen: list[str] = []

    async def work() -> str:
        try:
            await asyncio.wait_for(asyncio.sleep(0, "slept"), timeout=PATIENCE)
            try:
                await asyncio.wait_for(asyncio.sleep(PATIENCE), timeout=0.001)
            except TimeoutError:
                seen.append("timeout")
            gate.closed = True
            await asyncio.sleep(0)
            seen.append("went on")
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            seen.append("cleared up")
            if raises:
                raise
        return "ended"

    async def scenario() -> str:
        return await gate.through(work())

    if raises:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(scenario())
    else:
        assert asyncio.run(scenario()) == "ended"
    assert seen == ["timeout", "cleared up"]
