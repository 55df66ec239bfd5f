"""SQLite: embedded, one writer at a time, many processes on one file."""

from __future__ import annotations

import importlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast import codec
from holdfast.clock import Clock
from holdfast.errors import InvalidSetting, StoreBusy, StoreUnavailable, WrongConnection, WrongSqliteLibrary
from holdfast.store.dialects.base import NOT_COUNTED, About, Conflict, Dialect, Result, Session, Unstorable
from holdfast.store.queries import Style

LOOK_OFTEN, LOOK_SELDOM = 0.002, 0.020
PAUSE = timedelta(milliseconds=10)
ASK_AGAIN = timedelta(milliseconds=1)
SAFE = (3, 51, 3)  # older ones can corrupt a WAL that several processes reset at once


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
        module: str = "pysqlite3",
        synchronous: str = "full",
        busy_timeout: timedelta = timedelta(seconds=10),
        make: Callable[[], Any] | None = None,
    ) -> None:
        if path in ("", ":memory:"):
            raise InvalidSetting("url: an in-memory SQLite can't be shared by threads and processes; name a file")
        self.path = Path(path).absolute()
        self.module = _load(module)
        self.synchronous, self.busy_timeout = synchronous, busy_timeout
        self._make = make or self._open

    def connect(self) -> Any:
        try:
            connection = self._make()
            connection.isolation_level = None
            self._be_patient(connection)
            self._use_wal(connection)
            connection.execute(f"pragma synchronous = {self.synchronous}")
            connection.execute("pragma temp_store = memory")
            return connection
        except self.module.Error as error:
            raise self.translate(error) from error

    def _open(self) -> Any:
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise StoreUnavailable(f"can't open {self.path}: {error.strerror}") from error
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

    def begin(self, connection: Any, *, write: bool, patience: timedelta | None = None) -> Session:
        if write:
            self._take_write_lock(connection)
        else:
            connection.execute("begin")
        return _Session(connection)

    def _take_write_lock(self, connection: Any) -> None:
        """At once: a deferred transaction that upgrades later fails with SQLITE_BUSY however long the timeout is.

        SQLite itself asks again every 100 ms, and among eight busy processes one may then wait for seconds, longer
        than a lease. Asking every millisecond, none waited for one.
        """
        connection.execute("pragma busy_timeout = 0")
        try:
            for left in range(max(1, int(self.busy_timeout / ASK_AGAIN)), 0, -1):
                try:
                    connection.execute("begin immediate")
                    return
                except self.module.OperationalError as error:
                    if left == 1 or "locked" not in str(error):
                        raise
                    time.sleep(ASK_AGAIN.total_seconds())
        finally:
            self._be_patient(connection)

    def _be_patient(self, connection: Any) -> None:
        connection.execute(f"pragma busy_timeout = {int(self.busy_timeout / timedelta(milliseconds=1))}")

    def alone(self, connection: Any) -> Session:
        return _Session(connection)

    def commit(self, connection: Any) -> None:
        connection.execute("commit")

    def rollback(self, connection: Any) -> None:
        if connection.in_transaction:
            connection.execute("rollback")

    def translate(self, error: Exception) -> Exception:
        driver_error: type[Exception] = self.module.Error
        if not isinstance(error, driver_error):
            return error
        text = str(error)
        data_error: type[Exception] = self.module.DataError
        if isinstance(error, data_error):
            return Unstorable(text)
        if "NOT NULL" in text and text.endswith("runs.created_at"):
            return Conflict(NOT_COUNTED)
        if "locked" in text or "busy" in text:
            return StoreBusy(f"{self.path.name} is locked by another connection; nothing was written")
        if isinstance(error, self.module.DatabaseError) and any(
            sign in text for sign in ("unable to open", "disk I/O", "readonly", "is full", "not a database")
        ):
            return StoreUnavailable(f"{self.path.name}: {text}")
        return error

    def about(self, connection: Any) -> About:
        module = self.module
        unsafe = f"SQLite {module.sqlite_version} can corrupt a file that several processes write: install pysqlite3"
        safe = module.sqlite_version_info >= SAFE
        return About(
            server=f"SQLite {module.sqlite_version}, {'safe' if safe else 'not safe'} with several writers",
            driver=f"{module.__name__.partition('.')[0]} (synchronous={self.synchronous})",
            advice=() if safe else (unsafe,),
        )

    def server_time(self, connection: Any, clock: Clock) -> datetime:
        return clock.wall()

    def instant(self, value: datetime) -> object:
        return codec.instant_text(value)

    def instant_text(self, value: datetime) -> str:
        return codec.instant_text(value)

    def parse_instant(self, value: Any) -> datetime | None:
        return None if value is None else codec.parse_instant(value)

    listens = True

    def listen(self, connection: Any, stopping: threading.Event, own: Callable[[], int]) -> Iterator[set[str]]:
        """`data_version` changes when another connection has committed. Asking takes microseconds.

        It can't tell our process's own commits from others', so while we commit ourselves it is asked less often.
        """
        seen, ours, pause = None, own(), LOOK_OFTEN
        while not stopping.is_set():
            time.sleep(pause)  # half of what waiting for the event with a time limit costs
            version = connection.execute("pragma data_version").fetchone()[0]
            if version == seen:
                pause = min(pause * 1.02, LOOK_SELDOM)
                continue
            alone = own() == ours
            seen, ours, pause = version, own(), LOOK_OFTEN if alone else 2 * LOOK_SELDOM
            yield {""}

    def joins_style(self, connection: Any) -> Style:
        if (connection.dialect.name, connection.dialect.driver) != ("sqlite", "aiosqlite"):
            return super().joins_style(connection)
        if not self.module.__name__.startswith("sqlite3"):
            raise self._wrong_library("aiosqlite, which uses sqlite3")
        files = [row[2] for row in connection.exec_driver_sql("pragma database_list") if row[1] == "main"]
        self._same_file(files)
        return "named"

    def join(self, connection: Any) -> Session:
        if not isinstance(connection, self.module.Connection):
            if type(connection).__name__ == "Connection" and "sqlite" in type(connection).__module__:
                raise self._wrong_library(type(connection).__module__)
            return super().join(connection)
        files = [row[2] for row in connection.execute("pragma database_list") if row[1] == "main"]
        self._same_file(files)
        if not connection.in_transaction:
            if connection.isolation_level is None:
                raise WrongConnection("no transaction is open on this connection: begin one with 'begin immediate'")
            connection.execute("begin immediate")
        return _Session(connection)

    def _same_file(self, files: list[str]) -> None:
        if not files or Path(files[0]) != self.path.resolve():
            raise WrongConnection(
                f"this connection is to {files[0] or 'a temporary database'}, the store is {self.path}"
            )

    def _wrong_library(self, other: str) -> WrongSqliteLibrary:
        return WrongSqliteLibrary(
            f"this connection is of {other}, the store uses {self.module.__name__}: two SQLite libraries in one "
            "process lose each other's locks. Use one for both: sqlite_module=… of Holdfast, module=… of create_engine"
        )


class _Session:
    def __init__(self, connection: Any) -> None:
        self._execute = connection.execute

    def put(self, text: str, values: object) -> None:
        self._execute(text, () if values is None else values)

    def execute(self, text: str, values: object) -> Result:
        cursor = self._execute(text, () if values is None else values)
        if cursor.description is None:
            return (), [], cursor.rowcount
        rows = cursor.fetchall()
        return rows, [column[0] for column in cursor.description], len(rows)


def _load(name: str) -> Any:
    try:
        module = importlib.import_module("pysqlite3.dbapi2" if name == "pysqlite3" else "sqlite3.dbapi2")
    except ImportError as error:
        raise InvalidSetting(f"sqlite_module: {name} is not installed") from error
    if module.sqlite_version_info < SAFE:
        warnings.warn(
            f"SQLite {module.sqlite_version} can corrupt a database that several processes write; "
            f"3.51.3 or newer is safe (install pysqlite3)",
            RuntimeWarning,
            stacklevel=4,
        )
    return module
