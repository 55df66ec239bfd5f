"""Submitting without a connection while a write transaction is open on the same SQLite file.

If that transaction is the caller's own, the submission would wait for itself. Linux shows that this process has the
lock, but not which thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from tests.contract.caller_transaction.callers import caller, count
from tests.databases import sqlite

from holdfast import Holdfast, StoreBusy
from holdfast.jobs.job import Job

ORDER = "insert into orders values (1)"
LIMIT = 60  # seconds; much longer than a test takes, and much shorter than the wait for a lock
NEVER = timedelta(hours=1)


def set_timeouts(monkeypatch: pytest.MonkeyPatch, hf: Holdfast, *, own: timedelta, others: timedelta) -> None:
    monkeypatch.setattr("holdfast.runs.submit.OWN_PATIENCE", own)
    monkeypatch.setattr(hf.store.dialect, "busy_timeout", others)


@pytest.mark.contract("P4", "S4")
@pytest.mark.parametrize("way", ["sqlite3", "sqlite3 connection", "sqlite3 session", "aiosqlite session"])
def test_a_submission_blocked_by_its_own_process_gives_up_early_with_advice(
    hf: Holdfast, job: Job[[str], str], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_timeouts(monkeypatch, hf, own=timedelta(seconds=0.2), others=NEVER)
    says = r"a transaction of this process.*If it is your own: .*using\(connection=…\), or .*on_commit"

    async def scenario() -> None:
        async with caller(way, hf.settings.url) as tx:
            await tx.execute(ORDER)
            with pytest.raises(StoreBusy, match=says):
                await job.asubmit("a")
            with pytest.raises(StoreBusy, match=says):
                job.submit("a")
            with pytest.raises(StoreBusy, match=says):
                job.submit_many([{"name": "a"}])
            await tx.submit(job, "a")
            await tx.commit()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT))
    assert (count(hf, "orders"), count(hf, "holdfast_runs")) == (1, 1)


@pytest.mark.contract("P4")
@pytest.mark.parametrize("way", ["sqlite3"])
def test_a_submission_waits_for_the_transaction_of_another_thread(
    hf: Holdfast, job: Job[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_timeouts(monkeypatch, hf, own=timedelta(seconds=LIMIT), others=NEVER)
    submitted = threading.Thread(target=job.submit, args=("a",))

    with contextlib.closing(sqlite.connect(hf.settings.url.removeprefix("sqlite:///"))) as connection:
        connection.execute(ORDER)
        submitted.start()
        give_up_at = time.monotonic() + LIMIT
        while not hf.store._turn.locked() and time.monotonic() < give_up_at:
            time.sleep(0.001)
        assert count(hf, "holdfast_runs") == 0
        connection.commit()
    submitted.join(LIMIT)

    assert (count(hf, "orders"), count(hf, "holdfast_runs")) == (1, 1)


@pytest.mark.contract("P4", "S4")
@pytest.mark.parametrize("way", ["sqlite3"])
def test_a_submission_waits_for_a_lock_of_another_process_for_the_busy_timeout(
    hf: Holdfast, job: Job[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_timeouts(monkeypatch, hf, own=timedelta(0), others=timedelta(seconds=0.3))
    script = f"""
import {sqlite.__name__} as sqlite
connection = sqlite.connect({hf.settings.url.removeprefix("sqlite:///")!r}, isolation_level=None)
connection.execute("begin immediate")
print("locked", flush=True)
input()
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        began = time.monotonic()
        with pytest.raises(StoreBusy, match=r"locked by another connection; nothing was written$"):
            job.submit("a")
        assert time.monotonic() - began >= 0.3
        other.communicate("\n")


ALONE = """
import contextlib, datetime, sys, threading
import sqlalchemy, sqlalchemy.orm
from holdfast import Holdfast, StoreBusy
from holdfast.runs import submit
from tests.databases import sqlite

path, way = sys.argv[1:]
submit.OWN_PATIENCE = datetime.timedelta(hours=1)
module = {"sqlite_module": "sqlite3"} if way == "django" else {}
hf = Holdfast(f"sqlite:///{path}", busy_timeout=3600, **module)
work = hf.job(name="work")(lambda: None)

@contextlib.contextmanager
def transaction():
    if way == "sqlite3":
        with contextlib.closing(sqlite.connect(path)) as connection:
            connection.execute("insert into orders values (1)")
            yield connection
            connection.commit()
    elif way == "session":
        with sqlalchemy.orm.Session(sqlalchemy.create_engine(f"sqlite:///{path}", module=sqlite)) as session:
            session.execute(sqlalchemy.text("insert into orders values (1)"))
            yield session
            session.commit()
    else:
        import django
        from django.conf import settings
        databases = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": path}}
        settings.configure(DATABASES=databases)
        django.setup()
        from django.db import connection, transaction
        with transaction.atomic():
            connection.cursor().execute("insert into orders values (1)")
            yield connection.connection
            transaction.on_commit(work.submit)
        connection.close()

work.submit()
with transaction() as connection:
    assert threading.active_count() == 1
    try:
        work.submit()
    except StoreBusy as error:
        print(error)
    hf.store.close()  # makes no checkpoint, because it can't take the lock
    work.using(connection=connection).submit()
print(len(hf.search().items))
hf.close()
"""


@pytest.mark.contract("P4", "S4")
@pytest.mark.parametrize(("way", "runs"), [("sqlite3", 2), ("session", 2), ("django", 3)])
def test_a_single_threaded_process_that_blocks_itself_gets_an_error_at_once(
    tmp_path: Path, way: str, runs: int
) -> None:
    path = tmp_path / "alone.db"
    with Holdfast(f"sqlite:///{path}") as hf:
        hf.start()
        hf.do(lambda tx: tx.execute_ddl("create table orders (id integer)"))

    command = [sys.executable, "-c", ALONE, str(path), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)

    assert done.returncode == 0, done.stderr
    error, found = done.stdout.splitlines()
    assert "It is your own: submit inside it with using(connection=…)" in error
    assert int(found) == runs
