"""Finishing in a transaction of the job: its rows and the outcome are committed together."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import Session
from tests.databases import sqlite
from tests.waiting import wait_for

from holdfast import Context, Holdfast, LeaseLost, Retry, StoreBusy
from holdfast.orchestrator import recover
from holdfast.testing import FakeClock, Manual

pytestmark = pytest.mark.contract("L5", "X3", "S2")

Connect = Callable[[], contextlib.AbstractContextManager[Any]]


@pytest.fixture
def connect(local_url: str) -> Connect:
    """Opens a connection of the application to the database of the runs."""

    @contextlib.contextmanager
    def connecting() -> Iterator[Any]:
        opened: Any = (
            sqlite.connect(local_url.removeprefix("sqlite:///"), timeout=20)
            if local_url.startswith("sqlite")
            else psycopg.connect(local_url)
        )
        if isinstance(opened, psycopg.Connection):
            opened.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        try:
            yield opened
        finally:
            opened.close()

    return connecting


@pytest.fixture
def papers(connect: Connect) -> Callable[[], list[str]]:
    """A table of the application; the function returns its rows."""
    with connect() as connection:
        connection.execute("create table papers (name text)")
        connection.commit()

    def found() -> list[str]:
        with connect() as connection:
            return [name for (name,) in connection.execute("select name from papers order by name").fetchall()]

    return found


def test_a_runs_outcome_and_its_rows_are_committed_together(
    local_url: str, connect: Connect, papers: Callable[[], list[str]]
) -> None:
    with Holdfast(local_url, poll_interval=0.05) as hf:
        failed: list[object] = []
        hf.on_failure(lambda *arguments: failed.append(arguments))

        @hf.job(name="write", key="name")
        def write(ctx: Context, name: str) -> int:
            ctx.log.info("writing %s", name)
            with connect() as connection:
                connection.execute(f"insert into papers values ('{name}')")
                ctx.finish(len(name), connection=connection)
                assert hf.snapshot(ctx.run.id).state == "running"  # other connections see this until the commit
                connection.commit()
            assert hf.snapshot(ctx.run.id).state == "succeeded"
            return -1

        with hf.worker():
            runs = [write.submit(name="first"), write.submit(name="first"), write.submit(name="second")]
            assert [run.result(timeout=60) for run in runs] == [5, 5, 6]
        assert papers() == ["first", "first", "second"]
        assert failed == []
        assert [event.kind for event in hf.timeline(runs[0].id)] == [
            "RUN_QUEUED",
            "RUN_STARTED",
            "LOG",
            "RUN_SUCCEEDED",
        ]
        assert hf.verify() == []


def test_the_result_of_a_committed_finish_comes_back_equal_or_is_refused(local_url: str, connect: Connect) -> None:
    """A function that is annotated to return None can give any plain JSON to `ctx.finish`."""
    with Holdfast(local_url, clock=FakeClock()) as hf:

        def finish(ctx: Context, result: object) -> None:
            with connect() as connection:
                ctx.finish(result, connection=connection)
                connection.commit()

        @hf.job(name="untyped", max_attempts=3)
        def untyped(ctx: Context, bad: bool) -> None:
            finish(ctx, (1, 2) if bad else [1, 2])

        @hf.job(name="typed")
        def typed(ctx: Context) -> tuple[int, int]:
            finish(ctx, (1, 2))
            return (0, 0)

        good, bad, pair = untyped.submit(False), untyped.submit(True), typed.submit()
        Manual(hf).run_all()

        assert good.result(timeout=1) == [1, 2]
        assert pair.result(timeout=1) == (1, 2)
        seen = bad.refresh().snapshot
        assert (seen.state, seen.failure_type, seen.attempt) == ("failed", "RESULT_NOT_STORABLE", 1)
        assert "it is of type tuple and would come back as list" in str(seen.error)


def test_a_job_that_returns_without_committing_fails_and_is_retried(
    local_url: str, connect: Connect, papers: Callable[[], list[str]]
) -> None:
    with Holdfast(local_url, poll_interval=0.05) as hf:

        @hf.job(name="write", max_attempts=3, retry=Retry(delay=0.01, jitter=0))
        def write(ctx: Context) -> None:
            with connect() as connection:
                connection.execute("insert into papers values ('it')")
                ctx.log.info("try %d", ctx.run.attempt)
                ctx.finish(connection=connection)
                match ctx.run.attempt:
                    case 1:
                        connection.rollback()
                    case 2:
                        raise ConnectionError("the commit failed")
                    case _:
                        connection.commit()
                        raise ConnectionError("the reply to the commit was lost")

        with hf.worker():
            run = write.submit()
            assert run.result(timeout=60) is None
        assert papers() == ["it"]
        story = hf.timeline(run.id)
        retried = [event.data["error"].strip().splitlines()[-1] for event in story if event.kind == "RUN_RETRIED"]
        assert [error.split(":")[0].split(".")[-1] for error in retried] == ["NotCommitted", "ConnectionError"]
        assert [event.data["message"] for event in story if event.kind == "LOG"] == ["try 1", "try 2", "try 3"]
        assert hf.verify() == []


def test_a_worker_that_lost_its_lease_changes_nothing(
    local_url: str, connect: Connect, papers: Callable[[], list[str]]
) -> None:
    """It loses its lease while it works, so neither its rows nor its outcome are committed."""
    clock = FakeClock()
    with Holdfast(local_url, clock=clock) as hf:

        @hf.job(name="write", max_attempts=2)
        def write(ctx: Context) -> str:
            if ctx.run.claim == 1:
                clock.advance(hf.settings.lease * 2)
                assert len(hf.do(lambda tx: recover.expired(tx, wait=timedelta(0), limit=10))) == 1
                [again] = manual.worker("second").claim()
                manual.worker("second").work(again)
            with connect() as connection:
                connection.execute(f"insert into papers values ('by claim {ctx.run.claim}')")
                ctx.finish(f"attempt {ctx.run.claim}", connection=connection)
                connection.commit()
            return ""

        manual = Manual(hf)
        run = write.submit()
        [claim] = manual.worker("first").claim()
        with pytest.raises(LeaseLost):
            manual.worker("first").work(claim)
        assert papers() == ["by claim 2"]
        assert run.result(timeout=1) == "attempt 2"
        assert hf.verify() == []


def test_a_worker_that_does_not_know_yet_that_it_lost_its_lease_changes_nothing(
    local_url: str, connect: Connect, papers: Callable[[], list[str]]
) -> None:
    """A real worker, which has not noticed yet that its lease was recovered."""
    with Holdfast(local_url, poll_interval=0.05) as hf:

        @hf.job(name="write")
        def write(ctx: Context) -> None:
            with connect() as connection:
                while ctx.run.claim == 1 and not hf.do(lambda tx: recover.expired(tx, wait=timedelta(0), limit=10)):
                    connection.execute("update holdfast_leases set expires_at = started_at")
                    connection.commit()
                connection.execute(f"insert into papers values ('by claim {ctx.run.claim}')")
                ctx.finish(f"attempt {ctx.run.claim}", connection=connection)
                connection.commit()

        with hf.worker():
            assert write.submit().result(timeout=60) == "attempt 2"
        assert papers() == ["by claim 2"]
        assert hf.verify() == []


def test_a_sqlalchemy_session_can_finish_a_run_and_its_dependents_start(local_url: str, papers: object) -> None:
    module = {"module": sqlite} if local_url.startswith("sqlite") else {}
    options: dict[str, Any] = {} if local_url.startswith("sqlite") else {"isolation_level": "READ COMMITTED"}
    engine = sqlalchemy.create_engine(local_url.replace("postgresql:", "postgresql+psycopg:"), **module, **options)
    with Holdfast(local_url, poll_interval=0.05) as hf:

        @hf.job(name="write")
        def write(ctx: Context) -> None:
            with Session(engine) as session:
                session.execute(sqlalchemy.text("insert into papers values ('it')"))
                ctx.finish("written", connection=session)
                session.commit()

        @hf.job(name="read")
        def read(ctx: Context) -> str:
            return f"{ctx.dependencies[0]} and read"

        with hf.worker():
            first = write.submit()
            assert read.using(depends_on=[first]).submit().result(timeout=60) == "written and read"
    engine.dispose()


def test_the_heartbeat_does_not_treat_a_finished_run_as_lost(
    local_url: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    with Holdfast(local_url, poll_interval=0.05, lease=3) as hf:
        lingering = threading.Event()

        @hf.job(name="write")
        def write(ctx: Context) -> None:
            with connect() as connection:
                ctx.finish(connection=connection)
                connection.commit()
            lingering.wait(1.5)  # longer than a renewal, shorter than the lease

        with hf.worker():
            write.submit().result(timeout=60)
        assert "lost" not in caplog.text
        assert "too late" not in caplog.text


@pytest.mark.contract("P10")
def test_a_finish_in_a_transaction_waits_for_a_locked_database(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    with (
        Holdfast(sqlite_url, poll_interval=0.05, lease=1) as hf,
        contextlib.closing(hf.store.dialect.connect()) as other,
    ):
        locked, refused, join = threading.Event(), threading.Event(), hf.store.join

        def watched(connection: Any, verb: Any) -> Any:
            try:
                return join(connection, verb)
            except StoreBusy:
                refused.set()
                raise

        monkeypatch.setattr(hf.store, "join", watched)

        @hf.job(max_attempts=1)
        def work(ctx: Context) -> None:
            assert locked.wait(40)
            with contextlib.closing(sqlite.connect(path, timeout=0)) as connection:
                ctx.finish("done", connection=connection)
                connection.commit()

        run = work.submit()
        with hf.worker():
            wait_for(lambda: run.refresh().state == "running")
            other.execute("begin immediate")
            locked.set()
            assert refused.wait(40)
            assert run.refresh().state == "running"
            other.execute("rollback")
            assert run.result(timeout=40) == "done"
        assert run.snapshot.claim == 1
