"""SQLite: embedded, one writer at a time, many processes on one file.

Checkpoints are ours to make: versions before 3.51.3 can lose committed pages when a checkpoint overlaps with a commit
that restarts the log. So no connection checkpoints by itself; `checkpoint` does it while it holds the write lock.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from holdfast.store.database_file import NETWORK, DatabaseFile, never_close, open_files
from holdfast.store.dialects import sqlite_sessions
from holdfast.store.dialects.base import (
    NOT_COUNTED,
    About,
    Caller,
    Conflict,
    Dialect,
    Session,
    SqlAlchemySession,
    Unstorable,
)
from holdfast.store.queries import Style
from holdfast.store.transaction import Row
from holdfast.support import json_text
from holdfast.support.clock import Clock
from holdfast.support.errors import InvalidSetting, StoreBusy, StoreUnavailable, StoreUnsafe, WrongSqliteLibrary

if TYPE_CHECKING:
    from holdfast.store.dialects.backup import Backup, Progress

log = logging.getLogger("holdfast.store")

LOOK_OFTEN, LOOK_SELDOM = 0.002, 0.020
PAUSE = timedelta(milliseconds=10)
ASK_AGAIN = timedelta(milliseconds=1)
OLDEST = (3, 38, 0)  # our statements use `->>`
CHECKPOINT_PAGES = 500
LOOK_AT_SIZE = 4  # commits between two looks at the log's size
CHECKPOINT_PATIENCE = timedelta(milliseconds=100)
PAGE = 4096
LOG_LIMIT = 16 * 1024 * 1024  # bytes that the log keeps when it starts again
LOG_TOO_LARGE = 64 * 1024 * 1024


class SqliteDialect(Dialect):
    name = "sqlite"
    style = "named"
    has_schemas = False
    one_writer = True
    locks_rows = False

    def __init__(
        self,
        path: str,
        *,
        module: str = "sqlite3",
        synchronous: str = "full",
        busy_timeout: timedelta = timedelta(seconds=10),
        make: Callable[[], Any] | None = None,
    ) -> None:
        if path in ("", ":memory:"):
            raise InvalidSetting("url: an in-memory SQLite can't be shared by threads and processes; name a file")
        self.path = Path(path).resolve()  # SQLite names the -wal after the file itself, not after a link to it
        self.url = f"sqlite:///{quote(str(self.path))}"
        self.file = DatabaseFile(self.path)
        self.module = _load(module)
        self.synchronous, self.busy_timeout = synchronous, busy_timeout
        self._make = make or self._open
        self._log = _Log()
        self._listening, self._held_for_fork = threading.Lock(), False
        self._listeners: list[Any] = []

    def connect(self) -> Any:
        if self.file.unsafe is not None:
            raise self.file.unsafe
        self.file.create()
        before = open_files()
        try:
            connection = self._make()
            connection.isolation_level = None
            self._be_patient(connection)
            self._use_wal(connection)
            connection.execute(f"pragma synchronous = {self.synchronous}")
            connection.execute("pragma temp_store = memory")
            connection.execute("pragma wal_autocheckpoint = 0")
            connection.execute(f"pragma journal_size_limit = {LOG_LIMIT}")
            connection.execute("select 1 from sqlite_schema").fetchone()  # opens the -wal, and takes our locks
        except self.module.Error as error:
            raise self.translate(error) from error
        self.file.opened(connection, before=before)
        return connection

    def _open(self) -> Any:
        return self.module.connect(str(self.path), check_same_thread=False, isolation_level=None, cached_statements=256)

    def _use_wal(self, connection: Any) -> None:
        """Several processes may turn WAL on at once; SQLite then says 'locked' without waiting."""
        for left in range(max(1, int(self.busy_timeout / PAUSE)), 0, -1):
            try:
                connection.execute("pragma journal_mode = wal")
                return
            except self.module.OperationalError:
                if left == 1:
                    raise
                time.sleep(PAUSE.total_seconds())

    def begin(
        self,
        connection: Any,
        *,
        write: bool,
        patience: timedelta | None = None,
        own_patience: timedelta | None = None,
    ) -> Session:
        if write:
            self._take_write_lock(connection, self.busy_timeout if patience is None else patience, own_patience)
        else:
            connection.execute("begin")
        return sqlite_sessions.OwnSession(connection)

    def _take_write_lock(self, connection: Any, patience: timedelta, own_patience: timedelta | None = None) -> None:
        """At once: a deferred transaction that upgrades later fails with SQLITE_BUSY however long the timeout is.

        SQLite itself asks again every 100 ms, and among eight busy processes one may then wait for seconds, longer
        than a lease. Asking every millisecond, none waited for one.
        """
        connection.execute("pragma busy_timeout = 0")
        give_up_at = time.monotonic() + patience.total_seconds()
        pause = math.inf if own_patience is None else own_patience.total_seconds()
        look_at: float | None = None
        try:
            while True:
                try:
                    connection.execute("begin immediate")
                    return
                except self.module.OperationalError as error:
                    now = time.monotonic()
                    if "locked" not in str(error) or now >= give_up_at:
                        raise
                    if look_at is None:  # the only thread of a process does not release a lock while it waits here
                        look_at = now if threading.active_count() == 1 else now + pause
                    if now >= look_at:
                        look_at = now + pause
                        if self.file.is_being_written_here():
                            raise self._busy(here=True) from error
                    time.sleep(ASK_AGAIN.total_seconds())
        finally:
            self._be_patient(connection)

    def _be_patient(self, connection: Any) -> None:
        connection.execute(f"pragma busy_timeout = {int(self.busy_timeout / timedelta(milliseconds=1))}")

    def alone(self, connection: Any) -> Session:
        self.file.check(connection)
        return sqlite_sessions.OwnSession(connection)

    def commit(self, connection: Any) -> None:
        self.file.check(connection)
        connection.execute("commit")
        self.file.check(connection, committed=True)

    def committed(self, connection: Any) -> None:
        """Checkpoint when about 500 pages were written since the last time, by whichever process comes first."""
        if self._log.committed(self.file):
            self.checkpoint(connection)

    def checkpoint(self, connection: Any) -> None:
        """Copy the log into the database while we hold the write lock, so that no commit overlaps with it.

        The lock is held by one connection and the checkpoint made by another: the one with a transaction may not.
        PASSIVE waits for no reader; the next commit starts the log again if no reader still needs it.
        """
        if not self._log.commits or self.file.unsafe is not None or self.file.is_replaced(connection):
            return
        try:
            self._take_write_lock(connection, min(CHECKPOINT_PATIENCE, self.busy_timeout))
            try:
                with contextlib.closing(self._make()) as other:
                    other.execute("pragma wal_autocheckpoint = 0")
                    other.execute(f"pragma synchronous = {self.synchronous}")
                    _, pages, copied = other.execute("pragma wal_checkpoint(passive)").fetchone()
            finally:
                connection.execute("rollback")
        except (self.module.Error, StoreBusy) as error:
            log.debug("no checkpoint of %s now: %s", self.path.name, error)
            return
        if self._log.checkpointed(pages, copied, self.file.log_size):
            log.warning(
                "%s-wal has %d MB: a reader that does not end keeps it from starting again",
                self.path.name,
                self.file.log_size // 1_000_000,
            )

    def close(self, connection: Any) -> None:
        if self.file.is_replaced(connection):
            never_close(connection)
        else:
            connection.close()
        self.file.closed(connection)
        if connection in self._listeners:
            self._listeners.remove(connection)

    def backup(self, connection: Any, path: Path, *, progress: Progress) -> Backup:
        from holdfast.store.dialects import backup

        return backup.copy(self.module, connection, path, progress=progress)

    def before_fork(self) -> None:
        self._held_for_fork = self._listening.acquire(timeout=LOOK_SELDOM)

    def after_fork_in_parent(self) -> None:
        if self._held_for_fork:
            self._listening.release()

    def after_fork_in_child(self, inherited: list[Any]) -> None:
        """Close what is idle. SQLite counts a file's locks per process and copies the count to a child, which takes no
        locks of its own while an inherited connection is open. The parent's locks keep its `-wal` in place."""
        for connection in (*inherited, *(self._listeners if self._held_for_fork else ())):
            if not connection.in_transaction:
                connection.close()
            self.file.closed(connection)
        self._listeners, self._listening = [], threading.Lock()

    def translate(self, error: Exception) -> Exception:
        known = getattr(error, "orig", error)  # what SQLAlchemy has wrapped
        if not isinstance(known, self.module.Error):
            return error
        text = str(known)
        if isinstance(known, self.module.DataError):
            return Unstorable(text)
        if "NOT NULL" in text and text.endswith("runs.created_at"):
            return Conflict(NOT_COUNTED)
        if "locked" in text or "busy" in text:
            return self._busy(here=self.file.is_being_written_here())
        if isinstance(known, self.module.DatabaseError) and any(
            sign in text for sign in ("unable to open", "disk I/O", "readonly", "is full", "not a database")
        ):
            return StoreUnavailable(f"{self.path.name}: {text}")
        return error

    def _busy(self, *, here: bool | None) -> StoreBusy:
        """`here` says whether a connection of this process has the lock, where that is known."""
        if here is False:
            return StoreBusy(f"{self.path.name} is locked by another connection; nothing was written")
        alone = here and threading.active_count() == 1
        return StoreBusy(
            f"{self.path.name} is locked by {'a transaction of this process' if here else 'another connection'}; "
            f"nothing was written. {'It is your own' if alone else 'If it is your own'}: submit inside it with "
            "using(connection=…), or after its commit (in Django with transaction.on_commit)"
        )

    def about(self, connection: Any) -> About:
        module = self.module
        return About(
            server=f"SQLite {module.sqlite_version}",
            driver=f"{module.__name__.partition('.')[0]} (synchronous={self.synchronous})",
            advice=(*self.warnings(), *self._file_advice()),
        )

    @property
    def unsafe(self) -> StoreUnsafe | None:
        return self.file.unsafe

    def problem_of(self, pid: int) -> str | None:
        return self.file.problem_of(pid)

    def warnings(self) -> tuple[str, ...]:
        if not _has_reset_bug(self.module.sqlite_version_info):
            return ()
        return (
            f"SQLite {self.module.sqlite_version} can lose committed pages when another program checkpoints the file "
            "while Holdfast writes (fixed in 3.51.3). Holdfast's own checkpoints avoid it. Don't let other programs "
            "write to the file, or use sqlite_module='pysqlite3'",
        )

    def _file_advice(self) -> Iterator[str]:
        if (kind := self.file.file_system) in NETWORK:
            yield f"{self.path.name} is on a network file system ({kind}), where SQLite's locks and -shm don't work"

    def server_time(self, connection: Any, clock: Clock) -> datetime:
        return clock.wall()

    def instant(self, value: datetime) -> object:
        return json_text.instant_text(value)

    def instant_text(self, value: datetime) -> str:
        return json_text.instant_text(value)

    def parse_instant(self, value: Any) -> datetime | None:
        return None if value is None else json_text.parse_instant(value)

    listens = True

    def listen(self, connection: Any, stopping: threading.Event, own: Callable[[], int]) -> Iterator[set[str]]:
        """`data_version` changes when another connection has committed. Asking takes microseconds.

        It can't tell our process's own commits from others', so while we commit ourselves it is asked less often.
        """
        seen, ours, pause = None, own(), LOOK_OFTEN
        self._listeners.append(connection)
        while not stopping.is_set():
            time.sleep(pause)  # half of what waiting for the event with a time limit costs
            with self._listening:
                version = connection.execute("pragma data_version").fetchone()[0]
            if version == seen:
                pause = min(pause * 1.02, LOOK_SELDOM)
                continue
            alone = own() == ours
            seen, ours, pause = version, own(), LOOK_OFTEN if alone else 2 * LOOK_SELDOM
            yield {""}

    def join(self, caller: Caller) -> tuple[Session, Style]:
        connection = sqlite_sessions.library_connection(caller)
        if isinstance(connection, self.module.Connection):
            if connection is caller.driver:
                return sqlite_sessions.JoinedSession(connection), "named"
            if caller.sqlalchemy is not None:
                return SqlAlchemySession(caller.sqlalchemy), "named"
        elif type(connection).__name__ == "Connection" and "sqlite" in type(connection).__module__:
            raise self._wrong_library(type(connection).__module__)
        return super().join(caller)

    def elsewhere(self, ours: Row, theirs: Row) -> str:
        return super().elsewhere(ours, {"name": theirs["name"] or "a temporary database"})

    def enter(self, caller: Caller, session: Session) -> None:
        session.put("pragma wal_autocheckpoint = 0", None)
        sqlite_sessions.enter(caller, session)

    def _wrong_library(self, other: str) -> WrongSqliteLibrary:
        return WrongSqliteLibrary(
            f"this connection is of {other}, the store uses {self.module.__name__}: two SQLite libraries in one "
            "process lose each other's locks. Use one for both: sqlite_module=… of Holdfast, module=… of create_engine"
        )


class _Log:
    """How much was written to the log since the last checkpoint, as far as this process knows.

    SQLite does not tell how many pages a commit wrote, so the last checkpoint's count says how many commits make 500.
    """

    def __init__(self) -> None:
        self.commits = 0
        self._every = 50
        self._left = 0
        self._size = 0
        self._told = False

    def committed(self, file: DatabaseFile) -> bool:
        """Count a commit; whether a checkpoint is due. Large commits are seen by the size of the log."""
        self.commits += 1
        if self.commits >= self._every:
            return True
        return self.commits % LOOK_AT_SIZE == 0 and file.log_size - self._size >= CHECKPOINT_PAGES * PAGE

    def checkpointed(self, pages: int, copied: int, size: int) -> bool:
        """Begin to count anew; whether the log has become too large, which is told once."""
        written = max(1, pages - self._left)
        self._every = max(1, min(CHECKPOINT_PAGES, CHECKPOINT_PAGES * self.commits // written))
        # A log that was copied whole starts again with the next commit, unless a reader still needs it.
        self.commits, self._left, self._size = 0, 0 if copied == pages else pages, size
        too_large = size > LOG_TOO_LARGE
        news, self._told = too_large and not self._told, too_large
        return news


def _has_reset_bug(version: tuple[int, ...]) -> bool:
    """Versions in which a checkpoint beside a commit that restarts the log can lose pages."""
    return version < (3, 51, 3) and not (3, 44, 6) <= version < (3, 45) and not (3, 50, 7) <= version < (3, 51)


def _load(name: str) -> Any:
    try:
        module = importlib.import_module(f"{name}.dbapi2")
    except ImportError as error:
        raise InvalidSetting(f"sqlite_module: {name} is not installed: pip install 'holdfast[{name}]'") from error
    if module.sqlite_version_info < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise InvalidSetting(
            f"sqlite_module: {name} has SQLite {module.sqlite_version}, and Holdfast needs {oldest} or newer: "
            "use a newer Python, or sqlite_module='pysqlite3'"
        )
    return module
