"""The locks of the SQLite file are kept, and no write is acknowledged after the locks or the file are lost."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from tests.databases import locked_by, sqlite
from tests.listing import runs_of

from holdfast import BackupFailed, Holdfast, Job, StoreUnsafe, WorkerExists
from holdfast.store import database_file
from holdfast.store.dialects import sqlite as sqlite_module

OTHER = "pysqlite3" if sqlite.__name__.startswith("sqlite3") else "sqlite3"
OUTSIDE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
print(connection.execute(sys.argv[2]).fetchall())
connection.close()
"""
TWO_LIBRARIES = """
import importlib, os, signal, sys
from holdfast import Holdfast, StoreUnsafe

path, other = sys.argv[1:]
hf = Holdfast(f"sqlite:///{path}")

@hf.job(name="work")
def work(number: int) -> None: ...

for number in range(6):
    try:
        print("acknowledged", work.submit(number=number).id, flush=True)
    except StoreUnsafe as error:
        print("refused", error, flush=True)
    stranger = importlib.import_module(f"{other}.dbapi2").connect(path)
    stranger.execute("select count(*) from holdfast_runs").fetchone()
    stranger.close()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(sqlite_url: str) -> Path:
    return Path(sqlite_url.removeprefix("sqlite:///"))


@pytest.fixture
def hf(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Holdfast]:
    monkeypatch.setattr(database_file, "CHECK_LOCKS_EVERY", 0.0)
    with Holdfast(sqlite_url) as opened:
        opened.start()
        yield opened


@pytest.fixture
def work(hf: Holdfast) -> Job[[], None]:
    @hf.job(name="work")
    def work() -> None: ...

    return work


def outside(path: Path, statement: str) -> str:
    """Execute a statement in another process, with the SQLite of the standard library; return the rows as text."""
    done = subprocess.run([sys.executable, "-c", OUTSIDE, path, statement], capture_output=True, check=True, timeout=30)
    return done.stdout.decode().strip()


@pytest.mark.contract("S3")
def test_the_process_keeps_its_locks_however_many_connections_it_opens(hf: Holdfast, path: Path) -> None:
    for _ in range(3):
        hf.store.dialect.close(hf.store.dialect.connect())
    with Holdfast(hf.settings.url) as second:
        second.start()
    hf.doctor()

    assert {os.stat(path).st_ino, os.stat(f"{path}-shm").st_ino} <= locked_by(os.getpid())


@pytest.mark.contract("S3")
def test_an_outside_client_that_closes_does_not_delete_the_wal_file(work: Job[[], None], path: Path) -> None:
    work.submit()
    before = os.stat(f"{path}-wal").st_ino
    outside(path, "select count(*) from holdfast_runs")
    work.submit()

    assert os.stat(f"{path}-wal").st_ino == before


@pytest.mark.contract("S3")
def test_two_sqlite_libraries_in_one_process_are_refused_and_lose_nothing(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWO_LIBRARIES, str(path), OTHER], capture_output=True, text=True, timeout=60, check=False
    )
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    acknowledged = {rest.strip() for what, rest in lines if what == "acknowledged"}
    refused = [rest for what, rest in lines if what == "refused"]

    with Holdfast(f"sqlite:///{path}") as hf:
        stored = {run.id for run in runs_of(hf)}
        assert hf.verify() == []
    assert done.returncode == -9, done.stderr
    assert acknowledged
    assert acknowledged == stored
    assert len(acknowledged) + len(refused) == 6
    assert all("sqlite_module=… of Holdfast" in error and "module=… of create_engine" in error for error in refused)


@pytest.mark.contract("S3", "S4")
@pytest.mark.parametrize("damage", ["log removed", "file replaced", "file removed", "lock lost"])
def test_nothing_is_written_after_the_file_the_wal_or_the_lock_is_gone(
    hf: Holdfast, work: Job[[], None], path: Path, damage: str, tmp_path: Path
) -> None:
    work.submit()
    match damage:
        case "log removed":
            os.rename(f"{path}-wal", tmp_path / "gone-wal")
        case "file replaced":
            os.rename(path, tmp_path / "moved.db")
            path.touch()
        case "file removed":
            os.rename(path, tmp_path / "moved.db")
        case "lock lost":
            path.open("rb").close()  # any code in the process can do this, which drops the locks

    for _ in range(2):
        with pytest.raises(StoreUnsafe) as caught:
            work.submit()
        assert caught.value.code == "store_unsafe"
        assert "Nothing was written" in str(caught.value)
    [database] = [check for check in hf.doctor() if check.name == "database"]
    assert (database.verdict, database.advice) == ("error", str(caught.value))


@pytest.mark.contract("S3")
def test_a_commit_to_a_deleted_wal_file_is_not_acknowledged(
    hf: Holdfast, work: Job[[], None], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = database_file.DatabaseFile.check

    def deleted_in_between(self: Any, connection: Any, *, committed: bool = False) -> None:
        check(self, connection, committed=committed)
        if not committed:
            os.rename(f"{path}-wal", tmp_path / "gone-wal")

    work.submit()
    with monkeypatch.context() as patch:
        patch.setattr(database_file.DatabaseFile, "check", deleted_in_between)
        with pytest.raises(StoreUnsafe, match="may be lost"):
            work.submit()


@pytest.mark.contract("S3")
def test_closing_a_connection_with_a_deleted_wal_file_overwrites_nothing(
    hf: Holdfast, work: Job[[], None], path: Path, tmp_path: Path
) -> None:
    """If SQLite closed the connection, it would copy the pages of the deleted WAL file over the database."""
    outside(path, "pragma wal_checkpoint(truncate)")
    work.submit()
    for ending in ("-wal", "-shm"):
        os.rename(f"{path}{ending}", tmp_path / f"gone.db{ending}")
    outside(path, "create table written (text)")
    outside(path, "insert into written select value from json_each('[" + "1," * 5000 + "1]')")
    with pytest.raises(StoreUnsafe):
        work.submit()
    hf.close()

    assert outside(path, "pragma integrity_check") == "[('ok',)]"
    assert outside(path, "select count(*) from written") == "[(5001,)]"


def test_a_worker_stops_when_it_can_no_longer_write_safely(hf: Holdfast, path: Path, tmp_path: Path) -> None:
    worker = hf.worker()
    worker.start()
    os.rename(f"{path}-wal", tmp_path / "gone-wal")

    with pytest.raises(StoreUnsafe):
        worker.join(timeout=30)
    assert not worker.alive


@pytest.mark.contract("S4")
def test_a_file_with_two_hard_links_is_refused(sqlite_url: str, path: Path, tmp_path: Path) -> None:
    with Holdfast(sqlite_url) as hf:
        hf.start()
    os.link(path, tmp_path / "second.db")

    for name in (path, tmp_path / "second.db"):
        with Holdfast(f"sqlite:///{name}") as hf, pytest.raises(StoreUnsafe, match="hard links"):
            hf.start()


@pytest.mark.contract("S3", "P5")
def test_a_symbolic_link_leads_to_the_same_wal_file_and_lock(sqlite_url: str, path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(path)
    with (
        Holdfast(sqlite_url, single_process=True) as hf,
        Holdfast(f"sqlite:///{tmp_path / 'link.db'}", single_process=True) as linked,
    ):

        @linked.job(name="work")
        def work() -> None: ...

        with hf.worker():
            run = work.submit()
            with pytest.raises(WorkerExists):
                linked.worker().start()
        assert hf.snapshot(run.id).id == run.id
    assert not Path(f"{tmp_path / 'link.db'}-wal").exists()


@pytest.mark.contract("S3")
def test_a_forked_child_keeps_the_parents_locks_and_wal_file(hf: Holdfast, work: Job[[], None], path: Path) -> None:
    work.submit()
    before = os.stat(f"{path}-wal").st_ino
    if (pid := os.fork()) == 0:
        code = 1
        try:
            work.submit()
            held = {os.stat(path).st_ino, os.stat(f"{path}-shm").st_ino} <= locked_by(os.getpid())
            hf.close()
            code = 0 if held else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    work.submit()
    assert len(runs_of(hf)) == 3
    assert os.stat(f"{path}-wal").st_ino == before


@pytest.mark.contract("S3")
def test_a_child_forked_before_the_first_connection_can_listen(sqlite_url: str) -> None:
    """As under Gunicorn with --preload, the application is loaded before the fork, without an open connection."""
    with Holdfast(sqlite_url) as hf:
        if (pid := os.fork()) == 0:
            code = 1
            try:
                signal.alarm(60)
                hf.start()
                code = 0 if next(hf.store.listen(threading.Event())) == {""} else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


# Checkpoints


class Recorded:
    """Records the statements of all connections, and whether the write lock was held at each checkpoint."""

    def __init__(self, hf: Holdfast, path: Path) -> None:
        self.statements: list[tuple[int, str]] = []
        self.held: list[bool] = []
        self._path = path
        store: Any = hf._store.dialect  # before it has a connection
        make = store._make

        numbers = itertools.count()

        def recorded() -> Any:
            connection, number = make(), next(numbers)
            connection.set_trace_callback(lambda text: self._record(number, text))
            return connection

        store._make = recorded

    def _record(self, connection: int, text: str) -> None:
        self.statements.append((connection, text.lower()))
        if "wal_checkpoint" in text.lower():
            with contextlib.closing(sqlite.connect(self._path, timeout=0, isolation_level=None)) as other:
                try:
                    other.execute("begin immediate")
                    self.held.append(False)
                except sqlite.OperationalError:
                    self.held.append(True)


@pytest.mark.contract("S3")
def test_every_checkpoint_is_made_while_the_store_holds_the_write_lock(sqlite_url: str, path: Path) -> None:
    with Holdfast(sqlite_url) as hf:
        recorded = Recorded(hf, path)

        @hf.job(name="work")
        def work(text: str) -> None: ...

        for _ in range(50):
            work.submit_many([{"text": "x" * 1000} for _ in range(100)])
        commits = len(recorded.held)
    closing = len(recorded.held) - commits

    assert commits >= 5
    assert closing == 1
    assert all(recorded.held)
    opened = {connection for connection, _ in recorded.statements}
    switched_off = {connection for connection, text in recorded.statements if text == "pragma wal_autocheckpoint = 0"}
    assert opened == switched_off
    for number, (maker, text) in enumerate(recorded.statements):
        if "wal_checkpoint" in text:
            holders = [
                one
                for one, statement in recorded.statements[:number]
                if statement == "begin immediate" and one != maker
            ]
            # The connection that holds the lock releases it after the checkpoint, without writing.
            assert (holders[-1], "rollback") == next(
                (one, statement) for one, statement in recorded.statements[number:] if one == holders[-1]
            )


@pytest.mark.contract("S3")
def test_the_wal_file_is_restarted_instead_of_growing(hf: Holdfast, path: Path) -> None:
    @hf.job(name="work")
    def work(text: str) -> None: ...

    largest = 0
    for _ in range(30):
        work.submit_many([{"text": "x" * 1000} for _ in range(100)])
        largest = max(largest, os.stat(f"{path}-wal").st_size)

    assert largest < os.stat(path).st_size
    assert largest < 12_000_000


@pytest.mark.contract("S3")
def test_single_statements_are_checkpointed_too(sqlite_url: str, path: Path) -> None:
    """An idle worker writes only one row every few seconds, which must not let the WAL file grow for days."""
    with Holdfast(sqlite_url) as hf:
        recorded = Recorded(hf, path)
        for _ in range(600):
            hf.store.once(lambda tx: tx.run("resume_queue", name="default"), write=True)
        assert recorded.held


def test_a_reader_that_keeps_the_wal_file_from_restarting_is_logged(
    hf: Holdfast, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite_module, "LOG_TOO_LARGE", 4_000_000)

    @hf.job(name="work")
    def work(text: str) -> None: ...

    work.submit(text="")
    with contextlib.closing(sqlite.connect(path, isolation_level=None)) as reader, caplog.at_level(logging.WARNING):
        reader.execute("begin")
        reader.execute("select count(*) from holdfast_runs").fetchone()
        for _ in range(20):
            work.submit_many([{"text": "x" * 4000} for _ in range(100)])

    warnings = [record.message for record in caplog.records if "a long-running reader" in record.message]
    assert len(warnings) == 1


@pytest.mark.contract("S3")
def test_a_callers_connection_makes_no_checkpoint(hf: Holdfast, work: Job[[], None], path: Path) -> None:
    with contextlib.closing(sqlite.connect(path)) as connection:
        work.using(connection=connection).submit()
        assert connection.execute("pragma wal_autocheckpoint").fetchone() == (0,)
        connection.commit()
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", module=sqlite)
    with engine.begin() as connection:
        work.using(connection=connection).submit()
        assert connection.exec_driver_sql("pragma wal_autocheckpoint").fetchone() == (0,)
    engine.dispose()


# Backups


@pytest.mark.contract("S3")
def test_a_backup_of_a_database_in_use_is_consistent(hf: Holdfast, path: Path, tmp_path: Path) -> None:
    @hf.job(name="work")
    def work(text: str) -> None: ...

    work.submit_many([{"text": "x" * 4000} for _ in range(2000)])
    seen: list[tuple[int, int]] = []

    def progress(copied: int, total: int) -> None:
        seen.append((copied, total))
        work.submit(text="while it is copied")

    done = hf.backup(tmp_path / "a copy.db", progress=progress)

    assert len(seen) > 1
    assert seen[-1][0] == seen[-1][1]
    assert [copied for copied, _ in seen] == sorted({copied for copied, _ in seen}), "the copy must never start again"
    assert done.size == (tmp_path / "a copy.db").stat().st_size
    assert (tmp_path / "a copy.db").stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in tmp_path.glob("a copy*")) == ["a copy.db"]
    with Holdfast(f"sqlite:///{tmp_path / 'a copy.db'}") as copied:
        assert copied.count().number == 2000
        assert copied.verify() == []
    assert {os.stat(path).st_ino, os.stat(f"{path}-shm").st_ino} <= locked_by(os.getpid())


@pytest.mark.contract("S4")
def test_a_backup_overwrites_nothing_and_leaves_nothing_behind(hf: Holdfast, path: Path, tmp_path: Path) -> None:
    (tmp_path / "there.db").write_text("mine")
    (tmp_path / "dangling.db").symlink_to(tmp_path / "nowhere.db")
    before = sorted(file.name for file in tmp_path.iterdir())

    for there in (tmp_path / "there.db", tmp_path / "dangling.db", path, tmp_path / "no" / "folder.db"):
        with pytest.raises(BackupFailed) as caught:
            hf.backup(there)
        assert caught.value.code == "backup_failed"
    assert (tmp_path / "there.db").read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == before


@pytest.mark.contract("S4")
def test_a_damaged_copy_is_refused(hf: Holdfast, tmp_path: Path) -> None:
    @hf.job(name="work")
    def work(text: str) -> None: ...

    work.submit_many([{"text": "x" * 1000} for _ in range(2000)])

    def damage(copied: int, total: int) -> None:
        [part] = tmp_path.glob("copy.db.*.part")
        with part.open("r+b") as file:
            file.seek(8 * 4096)
            file.write(os.urandom(4096))

    with pytest.raises(BackupFailed):
        hf.backup(tmp_path / "copy.db", progress=damage)
    assert list(tmp_path.glob("copy*")) == []


def test_a_backup_of_another_database_is_refused_with_the_name_of_its_tool(postgres_url: str, tmp_path: Path) -> None:
    with Holdfast(postgres_url) as hf, pytest.raises(BackupFailed, match="pg_dump"):
        hf.backup(tmp_path / "copy.db")
