"""The connection pool: bounded, closed when idle, and free of deadlocks between threads."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.databases import WarmConnections, locked_by
from tests.fixtures import Database
from tests.listing import runs_of
from tests.waiting import wait_for

from holdfast import (
    Holdfast,
    StoreBusy,
    StoreUnsafe,
)
from holdfast.store import pool

LIMIT = 4
THREADS = 40


@pytest.fixture(autouse=True)
def no_warm_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests count the connections, so none may be kept for the next test."""
    monkeypatch.setattr(WarmConnections, "MOST", 0)


@pytest.fixture
def few(url: str) -> Iterator[Holdfast]:
    with Holdfast(url, max_connections=LIMIT, poll_interval=0.1) as hf:
        hf.start()
        yield hf


def connections(hf: Holdfast, database: Database) -> int:
    """The number of connections that this Holdfast has open, from the server or, on SQLite, from the store."""
    if database.kind == "postgresql":
        user = psycopg.conninfo.conninfo_to_dict(database.url)["user"]
        query = "select count(*) from pg_stat_activity where application_name = 'holdfast' and usename = "
        return int(database.all(f"{query}'{user}'")[0][0])
    if database.kind == "sqlite":
        return len(hf.store.dialect.file._open) - (hf.store._writer is not None)  # type: ignore[attr-defined]
    pytest.skip("no count of connections: SQL Server does not show them to this user")


def burst(hf: Holdfast, database: Database) -> int:
    """Read several times in all threads at once; return the largest number of open connections."""
    together, over, most = threading.Barrier(THREADS), threading.Event(), [0]

    def read(number: int) -> int:
        together.wait(60)
        for _ in range(10):
            assert runs_of(hf) == []
        return number

    def count() -> None:
        while not over.is_set():
            most.append(connections(hf, database))

    counting = threading.Thread(target=count)
    counting.start()
    try:
        with ThreadPoolExecutor(THREADS) as threads:
            assert sorted(threads.map(read, range(THREADS))) == list(range(THREADS))
    finally:
        over.set()
        counting.join(60)
    return max(*most, connections(hf, database))


@pytest.mark.contract("S3")
def test_many_reading_threads_share_few_connections(few: Holdfast, database: Database) -> None:
    assert 1 <= burst(few, database) <= LIMIT


@pytest.mark.contract("S3")
def test_unused_connections_are_closed(few: Holdfast, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_FOR", 0.1)
    burst(few, database)
    wait_for(lambda: connections(few, database) == pool.WARM, what="idle connections are closed")
    assert runs_of(few) == []
    assert connections(few, database) == pool.WARM, "the remaining connection must be used again"
    if database.kind == "sqlite":
        file = Path(database.url.removeprefix("sqlite:///"))
        few.job(name="work")(lambda: None).submit()
        assert {os.stat(file).st_ino, os.stat(f"{file}-shm").st_ino} <= locked_by(os.getpid())


@pytest.mark.contract("S3")
def test_idle_connections_to_a_replaced_file_are_never_closed(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing one would make SQLite delete the WAL file of the new database."""
    monkeypatch.setattr(pool, "IDLE_FOR", 0.1)
    file, kept = Path(sqlite_url.removeprefix("sqlite:///")), list[Any]()
    monkeypatch.setattr("holdfast.store.dialects.sqlite.never_close", kept.append)
    with Holdfast(sqlite_url) as hf:
        hf.start()
        with contextlib.suppress(StoreUnsafe), hf.store.reading(), hf.store.reading():
            file.rename(file.with_suffix(".old"))
            Path(f"{file}-wal").rename(f"{file}.old-wal")
        assert hf.store.dialect.unsafe is not None
        wait_for(lambda: kept, what="an idle connection is kept open")
        kept[0].execute("select 1 from sqlite_schema").fetchall()


@pytest.mark.contract("S4")
def test_a_thread_that_waits_too_long_for_a_connection_gets_an_error_with_the_reason(url: str) -> None:
    with Holdfast(url, max_connections=1, busy_timeout=0.2) as hf:
        hf.start()
        with hf.store.reading(), ThreadPoolExecutor(1) as other:
            with pytest.raises(StoreBusy, match=r"within 0.2 s: all 1 of max_connections are in use; nothing was"):
                other.submit(runs_of, hf).result(60)
        assert runs_of(hf) == []


@pytest.mark.contract("S3")
def test_threads_that_need_a_second_connection_never_deadlock(few: Holdfast) -> None:
    together = threading.Barrier(LIMIT)

    def read_twice(_: int) -> bool:
        with few.store.reading():
            together.wait(60)  # every connection is in use
            return runs_of(few) == []

    with ThreadPoolExecutor(LIMIT) as threads:
        assert list(threads.map(read_twice, range(LIMIT))) == [True] * LIMIT


@pytest.mark.contract("S3")
def test_a_worker_works_and_submits_while_others_use_all_connections(url: str) -> None:
    with Holdfast(url, max_connections=1, poll_interval=0.1, lease=3) as hf:
        work = hf.job(name="work")(lambda number: number)
        slow = threading.Event()
        hf.job(name="slow")(lambda: slow.wait(60))
        with hf.worker() as worker:
            with hf.store.reading(), ThreadPoolExecutor(1) as other:
                held = other.submit(hf.submit, "slow").result(60)
                run = other.submit(work.submit, 7).result(60)
                wait_for(lambda: hf.snapshot(run.id).state == "succeeded", what="the run ends")
                last_beat_at = worker._heartbeat.last_beat_at
                wait_for(lambda: worker._heartbeat.last_beat_at > last_beat_at, what="a heartbeat")
                slow.set()
            assert held.result(timeout=60) is True


@pytest.mark.contract("S3")
def test_a_forked_child_does_not_wait_for_connections_of_its_parents_threads(url: str) -> None:
    with Holdfast(url, max_connections=1, busy_timeout=5) as hf, contextlib.ExitStack() as stack:
        hf.start()
        reading, done = threading.Event(), threading.Event()

        def read() -> None:
            with hf.store.reading():
                reading.set()
                done.wait(60)

        thread = threading.Thread(target=read)
        thread.start()
        stack.callback(thread.join, 60)
        stack.callback(done.set)
        assert reading.wait(60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads is tested here
            pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                os._exit(0 if runs_of(hf) == [] else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("holder", ["another process", "another thread"])
def test_a_write_with_a_short_patience_does_not_wait_for_busy_timeout(sqlite_url: str, holder: str) -> None:
    """The heartbeat must soon know that it can't write; other writes wait for `busy_timeout`."""
    with Holdfast(sqlite_url, busy_timeout=600) as hf:
        hf.start()
        began, over = threading.Event(), threading.Event()

        def write() -> None:
            with hf.store.transaction():
                began.set()
                over.wait()

        other = hf.store.dialect.connect()
        writing = threading.Thread(target=write)
        if holder == "another process":
            other.execute("begin immediate")
        else:
            writing.start()
            began.wait()
        with pytest.raises(StoreBusy):
            hf.store.do(lambda tx: None, patience=timedelta(milliseconds=50))
        over.set()
        other.close()
        if holder == "another thread":
            writing.join()
        hf.store.do(lambda tx: None, patience=timedelta(seconds=40))
