"""Takeover: live workers keep their leases and names, and lost workers lose them."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.waiting import PATIENCE
from tests.waiting import wait_for

from holdfast import Context, Holdfast, WorkerExists
from holdfast.runs import workers
from holdfast.testing import FakeClock, Fault, Faults, Manual
from holdfast.worker import registration
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.in_flight import InFlight, RunInFlight

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("L4", "L7")
def test_a_job_that_blocks_longer_than_a_lease_keeps_it(url: str) -> None:
    """The lease is renewed in another thread than the blocked one."""
    with Holdfast(url, poll_interval=0.1, lease=3) as hf:

        @hf.job(name="thread")
        def thread() -> str:
            time.sleep(4.5)
            return "done"

        @hf.job(name="loop")
        async def loop() -> str:
            time.sleep(4.5)
            return "done"

        with hf.worker(), hf.worker():
            for run in (thread.submit(), loop.submit()):
                assert run.result(timeout=PATIENCE) == "done"
                assert (run.snapshot.claim, run.snapshot.takeovers) == (1, 0)


@pytest.mark.contract("L6", "L7", "S3")
def test_an_idle_worker_takes_over_the_runs_of_a_lost_one(url: str, database: Database) -> None:
    """A worker without runs still sends heartbeats, so it can recover the leases of others."""
    with Holdfast(url, poll_interval=0.1, lease=3) as hf:

        @hf.job(name="work", key="{key}")
        def work(key: str) -> str:
            return "done"

        @hf.job(name="unknown")
        def unknown() -> None: ...

        run, follower = work.submit("a"), work.submit("a")
        [claim] = Manual(hf).worker("lost").claim()
        assert claim.lease.run_id == run.id
        with hf.worker() as worker:
            assert run.result(timeout=PATIENCE) == "done"
            assert follower.result(timeout=PATIENCE) == "done"
            [first] = wait_for(lambda: hf.read(workers.live))
            [later] = wait_for(lambda: [one for one in hf.read(workers.live) if one.expires_at > first.expires_at])
            assert later.id == worker.id
        assert (run.snapshot.claim, run.snapshot.takeovers) == (2, 1)
        assert hf.read(workers.live) == []
        assert hf.verify() == []


@pytest.mark.contract("L7", "L5")
def test_a_run_is_stopped_before_a_lease_that_cannot_be_renewed_expires(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_at: list[datetime] = []
    with Holdfast(url, poll_interval=0.1, lease=3) as hf:

        @hf.job(name="work")
        def work(ctx: Context) -> None:
            if ctx.run.claim == 1:
                while not ctx.cancelled:
                    time.sleep(0.005)
                stopped_at.append(hf.clock.now())
                ctx.check()

        worker = hf.worker()
        worker.start()
        monkeypatch.setattr(worker._heartbeat, "beat", lambda: None)  # as if the network were down
        run = work.submit()
        expires_at = wait_for(lambda: run.refresh().snapshot.expires_at)
        wait_for(lambda: stopped_at)
        assert stopped_at[0] < expires_at, "it must stop before another worker can claim it"
        monkeypatch.undo()
        assert run.result(timeout=PATIENCE) is None
        worker.stop()
        assert run.snapshot.claim == 2


class Locked(Faults):
    """While it is on, every write of this engine finds the database locked."""

    on = False

    def before(self, *, write: bool) -> Fault | None:
        return Fault.BUSY if self.on and write else None


@pytest.mark.contract("P10", "L4", "L7")
def test_a_run_continues_while_the_database_is_locked_for_longer_than_a_lease(url: str) -> None:
    with Holdfast(url, poll_interval=0.1, lease=3) as hf, Holdfast(url) as onlooker:
        locked = Locked(hf)
        begun, over = threading.Event(), threading.Event()

        @hf.job(name="work")
        def work(ctx: Context) -> int:
            ctx.step("before", lambda: None)
            begun.set()
            while not over.is_set():
                ctx.check()
                time.sleep(0.005)
            ctx.step("after", lambda: None)
            return ctx.run.claim

        run = work.submit()
        with hf.worker():
            assert begun.wait(PATIENCE)
            locked.on = True
            expired_at = onlooker.snapshot(run.id).expires_at
            assert expired_at is not None
            wait_for(lambda: onlooker.clock.now() > expired_at + hf.settings.lease)
            over.set()  # its step has to wait for the database, too
            locked.on = False
            assert run.result(timeout=PATIENCE) == 1
            assert run.snapshot.takeovers == 0
            wait_for(lambda: hf.events(kinds=["DATABASE_BUSY"]).events)
        assert len(hf.events(kinds=["DATABASE_BUSY"]).events) == 1, "there must be one event for the whole time"


@pytest.mark.contract("L5", "L7")
def test_a_worker_that_can_only_read_keeps_its_lease_until_it_is_marked_as_expired(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    job = hf.job(name="work", timeout=None)(lambda: None)
    job.submit()
    [claim] = manual.worker("a").claim()
    settings, in_flight = hf.settings, InFlight()
    running = RunInFlight(claimed=claim, job=job, lease_until=clock.elapsed() + 15, deadline=None)
    in_flight.take(running)
    heartbeat = Heartbeat(hf.store, in_flight, settings, clock, holder="a")
    proof, wait = settings.proof_for.total_seconds(), settings.takeover_wait
    assert settings.renew_every < settings.proof_for < wait

    def left() -> float:
        heartbeat.confirm_leases()
        return running.lease_until - clock.elapsed()

    assert left() == 15
    clock.advance(100)
    assert left() == proof, "the lease is not marked as expired, so a takeover is at least one wait away"
    manual.orchestrate(takeover_wait=wait)
    assert left() == proof
    clock.advance(4)
    assert left() == proof - 4
    clock.jump(wait)
    assert left() < 0, "after the jump of the clock, others see the wait as over"
    clock.jump(-2 * wait)
    assert left() == proof
    clock.jump(wait)
    clock.advance(wait)
    manual.orchestrate(takeover_wait=wait)
    left()
    assert running.stopped == "lost"


@pytest.mark.contract("J2")
def test_a_second_exclusive_worker_refuses_to_start_and_names_the_first(url: str) -> None:
    with Holdfast(url, poll_interval=0.1, lease=3) as hf:
        with hf.worker(exclusive="scheduler") as first:
            with pytest.raises(WorkerExists, match="scheduler") as caught:
                hf.worker(exclusive="scheduler").start()
            assert first.id in str(caught.value)
            assert caught.value.code == "worker_exists"
            with hf.worker(exclusive="another"):
                pass
        with hf.worker(exclusive="scheduler"):
            pass


@pytest.mark.contract("J2")
def test_an_exclusive_worker_takes_over_from_a_lost_one(url: str, database: Database) -> None:
    with Holdfast(url, poll_interval=0.1, lease=3) as hf:
        silent = hf.worker(exclusive="scheduler")
        registration.register(hf, silent)  # its process died right after
        [left] = hf.read(workers.live)
        with hf.worker(exclusive="scheduler") as successor:  # a worker waits at most one lease for its name
            [found] = hf.read(workers.live)
            assert found.id == successor.id
            assert found.started_at > left.expires_at, "until then its predecessor might have sent a heartbeat"


@pytest.mark.contract("J2", "J9")
def test_an_exclusive_worker_fails_the_runs_of_its_predecessor_before_it_starts_any(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Holdfast(url, poll_interval=0.1, lease=3) as hf:
        begun: list[str] = []

        @hf.job(name="ingest", on_crash="fail", key=lambda: "ingest")
        def ingest() -> None:
            begun.append(orphan.refresh().state)

        orphan = ingest.submit()
        dead = hf.worker(exclusive="scheduler")
        registration.register(hf, dead)
        assert len(Manual(hf).worker(dead.id).claim()) == 1  # its process died right after
        other = hf.job(name="other")(lambda: None).submit()
        beside = Manual(hf).worker("host:1:another:0123456789")
        assert [claim.lease.run_id for claim in beside.claim()] == [other.id]
        next_one = ingest.submit()

        with hf.worker(exclusive="scheduler"):
            assert orphan.refresh().state == "failed", "the run must have failed before start returns"
            next_one.result(timeout=PATIENCE)

        assert orphan.snapshot.failure_type == "PROCESS_TERMINATED"
        assert "worker_startup_recovery" in (orphan.snapshot.error or "")
        [taken] = [event for event in orphan.timeline() if event.kind == "RUN_TAKEN_OVER"]
        assert taken.happened_at is not None
        waited = taken.happened_at - datetime.fromisoformat(taken.data["expired_at"])
        assert waited >= hf.settings.takeover_wait, "a live worker must have had time to renew"
        assert begun == ["failed"]
        assert hf.verify() == []
        assert "worker_startup_recovery: recovered 1 runs" in caplog.text


@pytest.mark.contract("J9")
@pytest.mark.parametrize(("unknown", "why"), [("fail", "worker_startup_recovery"), ("leave", "its lease expired")])
def test_runs_of_an_unknown_worker_fail_at_the_start_if_that_is_the_policy(url: str, unknown: Any, why: str) -> None:
    with Holdfast(url, poll_interval=0.1, lease=3) as hf:
        begun: list[str] = []

        @hf.job(name="ingest", on_crash="fail", key=lambda: "ingest")
        def ingest() -> None:
            begun.append(orphan.refresh().state)

        orphan = ingest.submit()
        assert len(Manual(hf).worker("host:1:stranger:0123456789").claim()) == 1  # by a worker that is not registered
        next_one = ingest.submit()

        with hf.worker(exclusive="scheduler", unknown=unknown) as worker:
            if unknown == "fail":
                assert [one.id for one in hf.read(workers.live)] == [worker.id], (
                    "the worker must have sent heartbeats while it waited"
                )
                assert orphan.refresh().state == "failed", "the run must have failed before start returns"
            next_one.result(timeout=PATIENCE)

        assert (orphan.refresh().snapshot.error or "").endswith(why)
        assert begun == ["failed"]
        assert hf.verify() == []


@pytest.mark.contract("J2")
def test_an_exclusive_worker_that_was_replaced_starts_nothing_more(url: str, database: Database) -> None:
    with Holdfast(url, poll_interval=0.1, lease=3) as hf:

        @hf.job(name="work")
        def work() -> str:
            return "done"

        hf.queues.pause("default")
        replaced = hf.worker(exclusive="scheduler")
        replaced.start()
        database.run("update holdfast_workers set id = 'another'")
        hf.queues.resume("default")
        run = work.submit()
        wait_for(lambda: not replaced.alive)
        with pytest.raises(WorkerExists):
            replaced.join()
        assert run.refresh().state == "queued"


@pytest.mark.contract("P5")
def test_runs_left_by_a_crash_fail_as_crashed_however_long_ago_it_was(url: str, database: Database) -> None:
    """The deadline has passed and a cancel was requested, but neither is the reason why the runs ended."""
    with Holdfast(url, poll_interval=0.1, lease=3, single_process=True) as crashed:

        @crashed.job(name="work", timeout=0.001)
        def work(name: str) -> None: ...

        orphans = [work.submit(name) for name in "ab"]
        assert len(Manual(crashed).worker("crashed").claim(limit=2)) == 2
        orphans[1].cancel()

    with Holdfast(url, poll_interval=0.1, lease=3, single_process=True) as hf, hf.worker():
        seen = [hf.snapshot(run.id) for run in orphans]
        assert [(one.state, one.failure_type) for one in seen] == [("failed", "PROCESS_TERMINATED")] * 2


@pytest.mark.contract("P5")
def test_a_single_process_fails_at_start_up_the_runs_that_a_crash_left(url: str, database: Database) -> None:
    with Holdfast(url, poll_interval=0.1, lease=3, single_process=True) as crashed:

        @crashed.job(name="work", key="{name}")
        def work(name: str) -> None: ...

        orphans = [work.submit(name) for name in "abc"]
        waiting = work.submit("a")
        assert work.options.policy.on_crash == "fail"
        assert len(Manual(crashed).worker("crashed").claim(limit=3)) == 3

    with Holdfast(url, poll_interval=0.1, lease=3, single_process=True) as hf:

        @hf.job(name="work", key="{name}")
        def again(name: str) -> str:
            return name

        with hf.worker():
            # The orphans failed at start-up, before the worker began to claim, and not only when their leases expired.
            seen = [hf.snapshot(run.id) for run in orphans]
            assert [(one.state, one.failure_type) for one in seen] == [("failed", "PROCESS_TERMINATED")] * 3
            assert hf.get(waiting.id).result(timeout=PATIENCE) == "a"
            with pytest.raises(WorkerExists):
                hf.worker().start()
        assert hf.verify() == []
