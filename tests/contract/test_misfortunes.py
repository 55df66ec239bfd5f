"""Odd moments that once broke something, each on every store where it can happen."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.listing import runs_of
from tests.postgres import PostgresServer

from holdfast import Context, Holdfast, InvalidPolicy, Retry, RunFailed, StoreBusy, TryAgain, WrongConnection
from holdfast.orchestrator import promote
from holdfast.testing import Manual
from holdfast.worker.threads import Threads


@pytest.mark.contract("S3", "P3")
def test_a_wait_whose_row_changes_while_it_is_looked_at_stays_in_sight(postgres_url: str) -> None:
    with Holdfast(postgres_url) as hf, psycopg.connect(postgres_url) as raw:

        @hf.job(name="keyed", key="k")
        def keyed(k: str) -> None: ...

        @hf.job(name="plain")
        def plain() -> None: ...

        manual = Manual(hf)
        hand = manual.worker("w", jobs=["keyed"])
        other = manual.worker("w", jobs=["plain"])
        keyed.submit(k="K")
        [holding] = hand.claim()
        needed = plain.submit()
        [running] = other.claim()
        earlier = plain.using(after=[plain.submit()]).submit()
        waiting = keyed.using(after=[needed]).submit(k="K")

        raw.execute("select 1 from holdfast_waits where run_id = %s for update", [earlier.id])
        looking = threading.Thread(target=lambda: hf.do(lambda tx: promote.seen(tx, limit=1000)))
        looking.start()
        blocked = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
        with psycopg.connect(postgres_url, autocommit=True) as watcher:
            while watcher.execute(blocked).fetchone() is None:
                threading.Event().wait(0.01)
        hand.finish(holding)
        hf.do(lambda tx: promote.turns(tx, limit=1000))
        other.finish(running)
        meeting = threading.Thread(target=lambda: hf.do(lambda tx: promote.needs(tx, [needed.id], limit=1000)))
        meeting.start()
        raw.commit()
        looking.join()
        meeting.join()

        manual.promote()
        manual.promote()
        assert [claim.lease.run_id for claim in hand.claim()] == [waiting.id]
        assert hf.verify() == []


def test_verify_sees_a_wait_that_no_one_will_look_at(hf: Holdfast, database: Any) -> None:
    @hf.job(name="late")
    def late() -> None: ...

    run = late.using(delay=3600).submit()
    database.run("update holdfast_waits set due_at = null, look = 0")
    assert [(found.problem, found.run_id) for found in hf.verify()] == [("wait_forgotten", run.id)]


@pytest.mark.contract("P9", "S3")
def test_a_policy_of_another_version_stops_no_worker(hf: Holdfast, manual: Manual, database: Any) -> None:
    @hf.job(name="work", max_attempts=2)
    def work() -> int:
        return 1

    strange, broken, healthy = work.submit(), work.submit(), work.submit()
    newer = '{"max_attempts":2,"timeout":60,"colour":"red","retry":{"steps":3,"shape":"round"}}'
    database.run(f"update holdfast_runs set policy = '{newer}' where id = '{strange.id}'")
    database.run(f"update holdfast_runs set policy = 'no policy' where id = '{broken.id}'")

    claims = manual.worker("w").claim(limit=3)
    assert [claim.lease.run_id for claim in claims] == [strange.id, broken.id, healthy.id]
    assert claims[0].policy.timeout == timedelta(seconds=60)


@pytest.mark.contract("S3", "X4")
def test_a_read_only_moment_of_the_database_throws_no_finished_work_away(
    postgres: PostgresServer, postgres_url: str
) -> None:
    with Holdfast(postgres_url, tick=0.05, lease=20) as hf, psycopg.connect(postgres.url, autocommit=True) as admin:
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


@pytest.mark.contract("S3")
def test_a_submit_that_meets_a_callers_open_transaction_holds_up_no_other(postgres_url: str) -> None:
    with Holdfast(postgres_url, busy_timeout=20) as hf, psycopg.connect(postgres_url) as caller:

        @hf.job(name="work")
        def work(n: int) -> None: ...

        hf.start()
        work.using(connection=caller, idempotency_key="X").submit(n=1)
        blocked: list[str] = []
        waiting = threading.Thread(target=lambda: blocked.append(work.using(idempotency_key="X").submit(n=1).id))
        waiting.start()
        for number in range(20):
            work.submit(n=number)
        assert not blocked  # it waits still, and the others have not waited with it
        caller.commit()
        waiting.join(60)
        assert len(blocked) == 1
        assert len(runs_of(hf)) == 21


def test_a_task_that_ends_the_process_does_not_end_the_loop_of_the_others(live: Holdfast) -> None:
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


def test_a_pool_that_gets_no_more_threads_goes_on_with_those_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, done = Threads("test"), threading.Semaphore(0)
    pool.run(lambda: done.release())
    assert done.acquire(timeout=60)
    monkeypatch.setattr(threading.Thread, "start", _no_more_threads)
    for _ in range(5):
        pool.run(lambda: done.release())
    for _ in range(5):
        assert done.acquire(timeout=60)


def _no_more_threads(self: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_connection_in_pipeline_mode_is_not_joined(postgres_url: str) -> None:
    with Holdfast(postgres_url) as hf, psycopg.connect(postgres_url) as caller:

        @hf.job(name="work")
        def work() -> None: ...

        hf.start()
        with caller.pipeline(), pytest.raises(WrongConnection):
            work.using(connection=caller).submit()
        caller.commit()
        assert runs_of(hf) == []


@pytest.mark.contract("S3", "S5")
def test_a_drain_stays_for_what_a_lost_worker_left_behind(url: str) -> None:
    with Holdfast(url, tick=0.05, lease=3) as hf:

        @hf.job(name="work")
        def work() -> int:
            return 1

        run = work.submit()
        lost = Manual(hf).worker("lost")
        [claim] = lost.claim()
        hf.do(lambda tx: tx.run("renew_leases", rows=[_over(claim, tx.now)], holder="lost"))
        worker = hf.worker(drain=True)
        worker.start()
        assert worker.join(timeout=60) == "drained"
        assert run.result(timeout=1) == 1


def _over(claim: Any, now: Any) -> dict[str, Any]:
    return {"run_id": claim.lease.run_id, "attempt": claim.lease.attempt, "expires_at": now - timedelta(seconds=1)}


def test_delays_are_seconds_or_timedeltas_and_errors_one_or_many(hf: Holdfast, manual: Manual, clock: Any) -> None:
    assert Retry(delay=2, max_delay=5, on=ValueError, never_on=[KeyError]) == Retry(
        delay=timedelta(seconds=2), max_delay=timedelta(seconds=5), on=(ValueError,), never_on=(KeyError,)
    )

    @hf.job(name="later", max_attempts=2)
    def later(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise TryAgain("busy", after=30)
        return ctx.attempt

    run = later.submit()
    manual.run_all()
    assert (run.refresh().snapshot.due_at or clock.now()) - clock.now() == timedelta(seconds=30)
    clock.advance(30)
    manual.run_all()
    assert run.result(timeout=1) == 2


def test_small_slips_are_told_at_once(hf: Holdfast) -> None:
    def plain(n: int) -> None: ...

    with pytest.raises(InvalidPolicy, match="parentheses"):
        hf.job(plain)  # type: ignore[arg-type]
    with pytest.raises(InvalidPolicy, match="zzz"):
        hf.job(key="{zzz}")(plain)
    with pytest.raises(InvalidPolicy):
        hf.worker(concurrency=0)
    job = hf.job(name="plain")(plain)
    for options in ({"after": [None]}, {"tags": ["a"]}, {"delay": -5}):
        with pytest.raises(InvalidPolicy):
            job.using(**options)


def test_why_says_that_a_silent_workers_run_waits_to_be_taken_over(hf: Holdfast, manual: Manual, clock: Any) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    run = work.submit()
    manual.worker("gone").claim()
    clock.advance(60)
    assert "no worker is alive to take it over" in run.why().reasons[0]


@pytest.mark.parametrize("who", ["another process", "another thread"])
def test_a_write_with_little_patience_does_not_wait_for_as_long_as_others(sqlite_url: str, who: str) -> None:
    """The heartbeat has to know soon that it can't write; everyone else waits for `busy_timeout`."""
    with Holdfast(sqlite_url, busy_timeout=600) as hf:
        hf.start()
        began, over = threading.Event(), threading.Event()

        def write() -> None:
            with hf.store.transaction():
                began.set()
                over.wait()

        other = hf.store.dialect.connect()
        writing = threading.Thread(target=write)
        if who == "another process":
            other.execute("begin immediate")
        else:
            writing.start()
            began.wait()
        with pytest.raises(StoreBusy):
            hf.store.do(lambda tx: None, patience=timedelta(milliseconds=50))
        over.set()
        other.close()
        if who == "another thread":
            writing.join()
        hf.store.do(lambda tx: None, patience=timedelta(seconds=40))
