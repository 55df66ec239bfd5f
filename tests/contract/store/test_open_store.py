"""Opening a store from a URL, an engine or the environment, and using it after a fork."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import threading
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine
from tests.databases import sqlite
from tests.listing import runs_of
from tests.postgres import PostgresServer

from holdfast import Holdfast, InvalidSetting, StoreRefused, StoreUnavailable
from holdfast.store import store
from holdfast.store.dialects.postgres import PostgresDialect
from holdfast.support.clock import SystemClock
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


def sqlalchemy_engine(url: str) -> Any:
    if url.startswith("sqlite"):
        return sqlalchemy.create_engine(url, module=sqlite)
    return sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


@pytest.mark.contract("S2", "S3")
def test_an_existing_sqlalchemy_engine_can_be_used(url: str, database: Database) -> None:
    engine = sqlalchemy_engine(url)
    with Holdfast(engine=engine, clock=FakeClock()) as hf:

        @hf.job(name="work", key="{name}")
        def work(name: str) -> str:
            return name

        run = work.submit("a")
        with engine.begin() as connection:
            joined = work.using(connection=connection).submit("b")
        assert Manual(hf).run_all() == 2
        assert (run.result(timeout=1), joined.result(timeout=1)) == ("a", "b")
        assert hf.verify() == []
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.text(f"select count(*) from {database.prefix}runs")).scalar() == 2
    engine.dispose()


@pytest.mark.contract("S3")
def test_the_url_of_an_async_engine_is_used(postgres_url: str) -> None:
    engine = create_async_engine(postgres_url.replace("postgresql:", "postgresql+asyncpg:"))
    with Holdfast(engine=engine) as hf:

        @hf.job(name="work")
        def work() -> int:
            return 1

        run = work.submit()
        Manual(hf).run_all()
        assert run.result(timeout=1) == 1


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "mysql://host/db", "sqlite://", "sqlite:///", "sqlite:///:memory:", "oracle://ada:secret@host/x"],
)
def test_an_invalid_url_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(InvalidSetting, match="url") as caught:
        Holdfast(url)
    assert caught.value.code == "invalid_setting"
    assert "secret" not in str(caught.value)


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("sqlite:////nonexistent/folder/x.db", "store_refused"),
        ("postgresql://nobody:secret@127.0.0.1:1/x", "store_unavailable"),
    ],
)
def test_a_missing_database_is_reported_without_showing_its_password(url: str, code: str) -> None:
    with Holdfast(url) as hf, pytest.raises(StoreUnavailable) as caught:
        hf.start()
    assert caught.value.code == code
    assert "secret" not in str(caught.value)


@pytest.mark.contract("S4")
def test_a_refused_connection_is_distinguished_from_an_outage(postgres: PostgresServer) -> None:
    for url in (postgres.url.replace("//postgres@", "//no_such_role@"), postgres.url_of("no_such_database")):
        with Holdfast(url) as hf, pytest.raises(StoreRefused, match=r"no_such_.* does not exist") as caught:
            hf.start(wait=600)
        assert caught.value.code == "store_refused"


@pytest.mark.contract("S3")
def test_environment_variables_set_what_is_not_passed(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("HOLDFAST_URL", url)
    monkeypatch.setenv("HOLDFAST_LEASE", "30")
    monkeypatch.setenv("HOLDFAST_CONCURRENCY", "3")
    with Holdfast(concurrency=5) as hf:
        hf.start()
        assert hf.settings.lease.total_seconds() == 30
        assert hf.settings.concurrency == 5
    with pytest.raises(InvalidSetting, match="nonsense"):
        Holdfast(url, nonsense=1)


@pytest.mark.contract("S3")
def test_submitting_is_safe_after_a_fork(url: str, database: Database) -> None:
    """Parent and children submit with the same Holdfast; they share no connection and lose or duplicate no run."""
    with Holdfast(url) as hf:

        @hf.job(name="work", key="{name}")
        def work(name: str) -> None: ...

        asyncio.run(work.asubmit("parent before"))
        children = []
        for number in range(3):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads is tested here
                pid = os.fork()
            if pid == 0:
                with child():
                    for index in range(4):
                        work.submit(f"child {number} {index}")
                    asyncio.run(work.asubmit(f"child {number} async"))
                    assert len(runs_of(hf)) >= 6
            children.append(pid)
            work.submit(f"parent {number}")
        assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0, 0]
        work.submit("parent after")

        assert database.count("runs") == database.count("ready") == 1 + 3 * 5 + 3 + 1
        assert len({row[0] for row in database.all("select id from holdfast_runs")}) == 20
        assert hf.verify() == []


@contextlib.contextmanager
def child() -> Iterator[None]:
    """The body of a forked process, which exits with 0 if the body raises nothing, and is killed if it hangs."""
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        yield
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


@contextlib.contextmanager
def held(locks: list[Any]) -> Iterator[None]:
    """Hold these locks in another thread."""
    has, enough = threading.Event(), threading.Event()

    def hold() -> None:
        with contextlib.ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            has.set()
            enough.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert has.wait(60)
    try:
        yield
    finally:
        enough.set()
        thread.join()


@pytest.mark.contract("S3")
def test_locks_are_reset_in_a_forked_child(url: str) -> None:
    """The threads that would release the locks do not exist in the child."""
    with Holdfast(url) as hf:

        @hf.job(name="work")
        def work() -> None: ...

        work.submit()
        clock, announcer = hf.clock, hf.notifier._announcer
        assert isinstance(clock, SystemClock)
        locks: list[Any] = [clock._lock, hf.store.counters._lock, hf.ids._lock]
        if announcer is not None:
            locks.append(announcer._changed)
        with held(locks):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                with child():
                    work.submit()
                    hf.store.counters.add("lease_lost")
                    clock.follow(clock.wall(), asked=clock.elapsed(), answered=clock.elapsed())
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert len(runs_of(hf)) == 2


@pytest.mark.contract("S3")
def test_a_sqlite_file_is_private_to_its_owner_and_durable(sqlite_url: str, tmp_path: Path) -> None:
    with Holdfast(sqlite_url) as hf:
        hf.start()
        path = Path(sqlite_url.removeprefix("sqlite:///"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with hf.store._connection(write=True) as connection:
            assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
            assert connection.execute("pragma synchronous").fetchone() == (2,)
    with Holdfast(sqlite_url, synchronous="normal") as hf:
        with hf.store._connection(write=True) as connection:
            assert connection.execute("pragma synchronous").fetchone() == (1,)


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
    ],
)
def test_a_worker_warns_once_of_a_sqlite_version_that_can_lose_pages(
    sqlite_url: str,
    version: tuple[int, ...],
    affected: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(sqlite, "sqlite_version_info", version)
    monkeypatch.setattr(store, "_warned", set())
    with Holdfast(sqlite_url) as hf:
        for _ in range(2):
            with hf.worker():
                pass
        advice = [check.advice for check in hf.doctor() if check.name == "database"]
    logged = [record.message for record in caplog.records if record.name == "holdfast.store"]
    assert ["fixed in 3.51.3" in text for text in logged] == [True] * affected
    assert ["fixed in 3.51.3" in text for text in advice] == [affected]


@pytest.mark.contract("S4")
def test_an_engine_of_another_postgres_driver_is_refused_with_advice() -> None:
    """psycopg2 may not be installed, so the test uses a connection of another driver in its place."""
    with contextlib.closing(sqlite.connect(":memory:")) as stranger:
        dialect = PostgresDialect("postgresql://localhost/none", make=lambda: stranger)
        with pytest.raises(InvalidSetting, match=r"its driver is \w*sqlite3.*create_engine\('postgresql\+psycopg://"):
            dialect.connect()


def test_a_sqlite_version_that_is_too_old_is_refused(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "sqlite_version_info", (3, 37, 2))
    with pytest.raises(InvalidSetting, match=r"needs 3\.38\.0 or newer"):
        Holdfast(sqlite_url)


@pytest.mark.contract("S3")
def test_a_broken_connection_is_replaced_and_the_run_is_submitted_once(
    postgres_url: str,
) -> None:
    import psycopg

    with Holdfast(postgres_url) as hf, psycopg.connect(postgres_url, autocommit=True) as other:

        @hf.job(name="work")
        def work() -> None: ...

        def cut_all() -> None:
            other.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() "
                "and pid <> pg_backend_pid()"
            )

        work.submit()
        cut_all()
        work.submit()
        work.submit_many([{}, {}])
        assert other.execute("select count(*) from holdfast_runs").fetchone() == (4,)
        cut_all()
        assert len(runs_of(hf)) == 4, "reads must not fail either"
        cut_all()
        hf.queues.pause("default")
        assert other.execute("select count(*) from holdfast_queues where paused_at is not null").fetchone() == (1,)


@pytest.mark.contract("S2")
def test_alembic_ignores_the_tables_of_holdfast(hf: Holdfast) -> None:
    prefix = hf.settings.table_prefix
    assert not hf.include_object(None, f"{prefix}runs", "table", True, None)
    assert hf.include_object(None, "orders", "table", True, None)
    assert hf.include_object(None, None, "schema", True, None)
