"""SQLite: embedded, with one writer at a time and many processes on one file.

Holdfast makes the checkpoints itself: versions before 3.51.3 can lose committed pages if a checkpoint overlaps with a
commit that restarts the log. So automatic checkpoints are off, and `checkpoint` holds the write lock.
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

LOOK_OFTEN, LOOK_SELDOM = 0.002, 0.020  # seconds between two polls of `data_version`
PAUSE = timedelta(milliseconds=10)
ASK_AGAIN = timedelta(milliseconds=1)
OLDEST = (3, 38, 0)  # the statements use `->>`
CHECKPOINT_PAGES = 500
LOOK_AT_SIZE = 4  # commits between two checks of the log's size
CHECKPOINT_PATIENCE = timedelta(milliseconds=100)
PAGE = 4096
LOG_LIMIT = 16 * 1024 * 1024  # bytes to which the log is truncated when it restarts
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
            connection.execute("select 1 from sqlite_schema").fetchone()  # opens the -wal and takes the locks
        except self.module.Error as error:
            raise self.translate(error) from error
        self.file.opened(connection, before=before)
        return connection

    def _open(self) -> Any:
        return self.module.connect(str(self.path), check_same_thread=False, isolation_level=None, cached_statements=256)

    def _use_wal(self, connection: Any) -> None:
        """Turn on WAL mode. Try again while another process does the same: SQLite then fails without waiting."""
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
        """Take the write lock at the beginning of a transaction.

        A deferred transaction that upgrades later fails with SQLITE_BUSY however long the timeout is. SQLite itself
        retries every 100 ms, so one of eight busy processes may wait for seconds, perhaps longer than a lease. With a
        retry every millisecond, no process waited for even one second.
        """
        connection.execute("pragma busy_timeout = 0")
        give_up_at = time.monotonic() + patience.total_seconds()
        pause = math.inf if own_patience is None else own_patience.total_seconds()
        check_at: float | None = None
        try:
            while True:
                try:
                    connection.execute("begin immediate")
                    return
                except self.module.OperationalError as error:
                    now = time.monotonic()
                    if "locked" not in str(error) or now >= give_up_at:
                        raise
                    if check_at is None:  # with a single thread, nothing can release this process's own lock
                        check_at = now if threading.active_count() == 1 else now + pause
                    if now >= check_at:
                        check_at = now + pause
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
        """Checkpoint when about 500 pages were written since the last checkpoint."""
        if self._log.committed(self.file):
            self.checkpoint(connection)

    def checkpoint(self, connection: Any) -> None:
        """Copy the log into the database while holding the write lock, so that no commit overlaps with it.

        One connection holds the lock and another makes the checkpoint, because a connection with an open transaction
        can't. PASSIVE waits for no reader; the next commit restarts the log unless a reader still needs it.
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
            log.debug("skipped a checkpoint of %s: %s", self.path.name, error)
            return
        if self._log.checkpointed(pages, copied, self.file.log_size):
            log.warning(
                "%s-wal has %d MB: a long-running reader keeps it from restarting",
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
        """Close the idle connections in the child.

        SQLite counts a file's locks per process, and a child inherits the count. So the child would take no locks
        of its own while an inherited connection is open. The parent's locks keep the `-wal` from being deleted.
        """
        for connection in (*inherited, *(self._listeners if self._held_for_fork else ())):
            if not connection.in_transaction:
                connection.close()
            self.file.closed(connection)
        self._listeners, self._listening = [], threading.Lock()

    def translate(self, error: Exception) -> Exception:
        known = getattr(error, "orig", error)  # the error that SQLAlchemy has wrapped
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
        """Return the error for a locked file; `here` is whether this process has the lock, or None if unknown."""
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
        """Poll `data_version`, which changes when another connection commits. A poll takes microseconds.

        It also changes after this process's own commits, so it is polled less often after one of them.
        """
        last_version, own_commits, pause = None, own(), LOOK_OFTEN
        self._listeners.append(connection)
        while not stopping.is_set():
            time.sleep(pause)  # costs half as much as waiting for the event with a timeout
            with self._listening:
                version = connection.execute("pragma data_version").fetchone()[0]
            if version == last_version:
                pause = min(pause * 1.02, LOOK_SELDOM)
                continue
            by_others = own() == own_commits
            last_version, own_commits, pause = version, own(), LOOK_OFTEN if by_others else 2 * LOOK_SELDOM
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
            f"this connection uses {other}, but the store uses {self.module.__name__}: two SQLite libraries in one "
            "process drop each other's locks. Use one for both: sqlite_module=… of Holdfast, module=… of create_engine"
        )


class _Log:
    """Estimates how much was written to the log since the last checkpoint.

    SQLite does not report how many pages a commit wrote. So the page count of the last checkpoint is used to estimate
    how many commits write 500 pages.
    """

    def __init__(self) -> None:
        self.commits = 0
        self._every = 50
        self._left = 0
        self._size = 0
        self._warned = False

    def committed(self, file: DatabaseFile) -> bool:
        """Count a commit and return whether a checkpoint is due. The size of the log reveals large commits."""
        self.commits += 1
        if self.commits >= self._every:
            return True
        return self.commits % LOOK_AT_SIZE == 0 and file.log_size - self._size >= CHECKPOINT_PAGES * PAGE

    def checkpointed(self, pages: int, copied: int, size: int) -> bool:
        """Restart the count. Return True, only once, if the log has become too large."""
        written = max(1, pages - self._left)
        self._every = max(1, min(CHECKPOINT_PAGES, CHECKPOINT_PAGES * self.commits // written))
        # A log that was copied completely restarts with the next commit, unless a reader still needs it.
        self.commits, self._left, self._size = 0, 0 if copied == pages else pages, size
        too_large = size > LOG_TOO_LARGE
        warn, self._warned = too_large and not self._warned, too_large
        return warn


def _has_reset_bug(version: tuple[int, ...]) -> bool:
    """Whether this version can lose pages if a checkpoint overlaps with a commit that restarts the log."""
    return version < (3, 51, 3) and not (3, 44, 6) <= version < (3, 45) and not (3, 50, 7) <= version < (3, 51)


def _load(name: str) -> Any:
    try:
        module = importlib.import_module(f"{name}.dbapi2")
    except ImportError as error:
        raise InvalidSetting(f"sqlite_module: {name} is not installed: pip install 'holdfast[{name}]'") from error
    if module.sqlite_version_info < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise InvalidSetting(
            f"sqlite_module: {name} has SQLite {module.sqlite_version}, but Holdfast needs {oldest} or newer: "
            "use a newer Python, or sqlite_module='pysqlite3'"
        )
    return module
