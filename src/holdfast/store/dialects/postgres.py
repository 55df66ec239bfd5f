"""PostgreSQL 14 and newer, with psycopg 3; direct, or through a pooler in transaction mode.

A server, a database or a role may have its own defaults. The statements depend on a few of them, which each of
Holdfast's connections sets itself:

    isolation           READ COMMITTED, in each `begin`, and as the session's default for single statements
    time zone, encoding on connect; a pooler passes both on
    timeouts            on connect, or in each transaction behind a pooler
    dates, floats …     not needed: results are binary, so the server's text format does not matter

In a caller's transaction, Holdfast changes no settings.
"""

from __future__ import annotations

import contextlib
import re
import select
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import errors

from holdfast.store.dialects.base import (
    NOT_COUNTED,
    About,
    Caller,
    Conflict,
    Dialect,
    Result,
    Session,
    SqlAlchemySession,
    Unstorable,
    first_line,
)
from holdfast.store.queries import Style
from holdfast.store.transaction import Row, Transaction
from holdfast.support.clock import Clock
from holdfast.support.errors import InvalidSetting, StoreBusy, StoreRefused, StoreUnavailable, WrongConnection

# Statistics of the queue tables are always outdated: a queue that was empty a second ago may have 100,000 rows now. The
# planner would then sort all of them for each claim, but every statement is designed to follow an index, row by row.
_PLAN = "select " + ", ".join(f"set_config('enable_{way}', 'off', true)" for way in ("bitmapscan", "seqscan"))

_ISOLATION = "read committed"
_BEGIN = f"begin isolation level {_ISOLATION}"

# A pooler applies these to each server connection that it lends; a direct connection keeps them.
_STATE = "select pg_backend_pid(), set_config('client_encoding', 'UTF8', false), set_config('TimeZone', 'UTC', false)"

# libpq gives no SQLSTATE for a refused connection, so match the message. If the server's messages are not in English, a
# refusal counts as an outage.
_REFUSED = re.compile(
    r"authentication failed"  # 28P01, 28000
    r"|no password supplied"
    r"|no pg_hba\.conf entry|pg_hba\.conf rejects|not permitted to log in"  # 28000
    r"|role .* does not exist|no such user"  # 28000
    r"|database .* does not exist|no such database"  # 3D000
    r"|permission denied for database"  # 42501
)

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresDialect(Dialect):
    name = "postgres"
    style = "pyformat"

    def __init__(
        self,
        url: str,
        *,
        statement_timeout: timedelta = timedelta(seconds=30),
        busy_timeout: timedelta = timedelta(seconds=10),
        make: Callable[[], Any] | None = None,
    ) -> None:
        self.url = url
        self._make = make or self._open
        self._limits = {"statement_timeout": statement_timeout, "lock_timeout": busy_timeout}
        self._pipelines: WeakKeyDictionary[Connection, AbstractContextManager[psycopg.Pipeline]] = WeakKeyDictionary()

    def connect(self) -> Connection:
        try:
            connection: Connection = self._make()
            if not isinstance(connection, psycopg.Connection):
                raise InvalidSetting(
                    f"engine: its driver is {type(connection).__module__.partition('.')[0]}, but Holdfast needs "
                    "psycopg 3: create_engine('postgresql+psycopg://…')"
                )
            connection.autocommit = True
            if self._is_pooled(connection):
                connection.prepare_threshold = None
            else:
                connection.prepared_max = 500  # enough for all statements, so that none is evicted
                settings = {name: str(_milliseconds(limit)) for name, limit in self._limits.items()}
                connection.execute(*_set_config(settings | {"default_transaction_isolation": _ISOLATION}))
            return connection
        except psycopg.Error as error:
            raise self.translate(error) from error

    def _open(self) -> Connection:
        return psycopg.connect(self.url, autocommit=True, connect_timeout=10, application_name="holdfast")

    def _is_pooled(self, connection: Connection) -> bool:
        """Whether the connection goes through a pooler, which reports a process id that it made up."""
        row = connection.execute(_STATE).fetchone()
        return row is None or row[0] != connection.info.backend_pid

    def begin(
        self,
        connection: Connection,
        *,
        write: bool,
        patience: timedelta | None = None,
        own_patience: timedelta | None = None,
    ) -> Session:
        """Begin in pipeline mode: a statement whose result is not needed at once shares a round trip with the next."""
        pipeline = connection.pipeline()
        session = _Session(connection, pipeline.__enter__())
        self._pipelines[connection] = pipeline
        connection.execute(_BEGIN if write else f"{_BEGIN} read only")
        if write:
            connection.execute(_PLAN)
        # Behind a pooler there is no session that keeps settings.
        limits = dict(self._limits) if connection.prepare_threshold is None else {}
        if patience is not None:
            limits["lock_timeout"] = patience
        for name, limit in limits.items():
            connection.execute(f"set local {name} = {_milliseconds(limit)}")
        return session

    def alone(self, connection: Connection) -> Session:
        return _Session(connection) if connection.prepare_threshold is not None else _PooledStatement(self, connection)

    def commit(self, connection: Connection) -> None:
        connection.execute("commit")
        self._pipelines.pop(connection).__exit__(None, None, None)

    def rollback(self, connection: Connection) -> None:
        self._leave_pipeline(connection)
        match connection.info.transaction_status:
            case psycopg.pq.TransactionStatus.IDLE:
                return
            case psycopg.pq.TransactionStatus.INTRANS:
                connection.execute("rollback")
            case _:
                # The server skipped the statements after the error in the pipeline, but psycopg counts some of them as
                # prepared. Using one of those again on this connection would fail.
                connection.close()

    def is_open(self, connection: Connection) -> bool:
        """Whether the connection is open. Data from an idle server means that it has closed the connection."""
        if connection.closed:
            return False
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        return not poll.poll(0)

    def close(self, connection: Connection) -> None:
        self._leave_pipeline(connection)
        with contextlib.suppress(psycopg.Error):
            connection.close()

    def _leave_pipeline(self, connection: Connection) -> None:
        """Leave pipeline mode and ignore its errors: they were raised elsewhere, or no longer matter."""
        if (pipeline := self._pipelines.pop(connection, None)) is not None:
            with contextlib.suppress(psycopg.Error):
                pipeline.__exit__(None, None, None)

    def translate(self, error: Exception) -> Exception:
        known = _of_psycopg(error)
        match known:
            case errors.DeadlockDetected() | errors.SerializationFailure():
                return Conflict(str(known))
            case errors.NotNullViolation() if known.diag.column_name == "created_at":
                return Conflict(NOT_COUNTED)
            case UnicodeEncodeError() if known.encoding != "utf-8":
                return WrongConnection(
                    f"this connection's client_encoding can't carry the character {known.object[known.start]!r}: "
                    "set client_encoding to UTF8"
                )
            case psycopg.DataError():
                return Unstorable(first_line(known))
            case errors.LockNotAvailable():
                return StoreBusy("a lock was not free within busy_timeout; nothing was written")
            case errors.QueryCanceled():
                return StoreBusy("a statement took longer than statement_timeout; nothing was written")
            case (
                errors.AdminShutdown()
                | errors.CrashShutdown()
                | errors.CannotConnectNow()
                | errors.IdleInTransactionSessionTimeout()
                | errors.ReadOnlySqlTransaction()
            ):
                return StoreUnavailable(f"PostgreSQL is not available: {first_line(known)}")
            case psycopg.OperationalError() if known.sqlstate is None and _REFUSED.search(str(known)):
                return StoreRefused(f"PostgreSQL refuses the connection: {first_line(known)}")
            case psycopg.OperationalError() | psycopg.InterfaceError():
                return StoreUnavailable(f"PostgreSQL is not available: {first_line(known)}")
        return error

    def about(self, connection: Connection) -> About:
        version = connection.info.server_version
        advice = []
        if version < 140_000:
            advice.append("PostgreSQL 14 or newer is needed")
        if connection.prepare_threshold is None:
            advice.append("connected through a pooler: work of other processes is noticed at the next poll")
        for name in ("fsync", "full_page_writes"):
            row = connection.execute("select current_setting(%s)", [name]).fetchone()
            if row is not None and row[0] == "off":
                advice.append(f"the server's {name} is off: a power failure can lose or corrupt committed data")
        row = connection.execute("select current_setting('synchronous_commit')").fetchone()
        if row is not None and row[0] == "off":
            advice.append("synchronous_commit is off: a crash of the server can lose the last commits")
        return About(
            server=f"PostgreSQL {connection.info.parameter_status('server_version') or version}",
            driver=f"psycopg {psycopg.__version__}",
            advice=tuple(advice),
        )

    def server_time(self, connection: Connection, clock: Clock) -> datetime:
        row = connection.execute("select clock_timestamp()", binary=True).fetchone()
        assert row is not None
        return row[0].astimezone(UTC)  # type: ignore[no-any-return]

    def instant(self, value: datetime) -> object:
        return value

    def instant_text(self, value: datetime) -> str:
        return _isoformat(value)

    def parse_instant(self, value: Any) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    announces = True
    listens = True

    def listen(self, connection: Connection, stopping: threading.Event, own: Callable[[], int]) -> Iterator[set[str]]:
        if connection.prepare_threshold is None:
            return  # a pooler would lend the connection to others, so rely on polling
        connection.execute("set idle_session_timeout = 0")  # it may wait for notifications for a long time
        connection.execute("listen holdfast")
        yield {""}  # for notifications that were sent before
        while not stopping.is_set():
            for notice in connection.notifies(timeout=0.5):
                yield set(notice.payload.split(","))
                if stopping.is_set():
                    return

    def announce(self, connection: Connection, names: set[str]) -> None:
        # A notification need not be durable: without this, each would cost a flush to disk.
        connection.execute("begin; set local synchronous_commit = off")
        connection.execute("select pg_notify('holdfast', %s)", [_payload(names)])  # same as the statement `announce`
        connection.execute("commit")

    def announce_joined(self, tx: Transaction) -> None:
        if tx.notified:
            tx.all("announce", names=_payload(tx.notified))

    def join(self, caller: Caller) -> tuple[Session, Style]:
        driver, sqlalchemy = caller.driver, caller.sqlalchemy
        is_psycopg = isinstance(driver, psycopg.Connection | psycopg.AsyncConnection)
        if is_psycopg and driver.pgconn.pipeline_status != psycopg.pq.PipelineStatus.OFF:
            raise WrongConnection("this connection is in pipeline mode, which delays results: leave that mode first")
        match driver:
            case psycopg.Connection():
                return _Session(driver), "pyformat"
            case psycopg.AsyncConnection() if sqlalchemy is not None:
                return _AsyncSession(driver), "pyformat"
        dialect = None if sqlalchemy is None else sqlalchemy.dialect
        if dialect is not None and (dialect.name, dialect.driver) == ("postgresql", "asyncpg"):
            return SqlAlchemySession(sqlalchemy), "dollar"
        return super().join(caller)

    def elsewhere(self, ours: Row, theirs: Row) -> str:
        if theirs["name"] != ours["name"]:
            return f"database {theirs['name']}, but the store uses {ours['name']}"
        if theirs["started_at"] != ours["started_at"]:
            return f"database {theirs['name']} on another server than the store's"
        return f"database {theirs['name']}, but can't see the store's tables: its role or search_path differs"

    def enter(self, caller: Caller, session: Session) -> None:
        """Raise WrongConnection unless a transaction is open.

        The store has already executed a statement on it, so a driver that begins by itself has begun a transaction.
        """
        driver = caller.driver
        if isinstance(driver, psycopg.Connection | psycopg.AsyncConnection):
            is_open = driver.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
        else:
            is_open = driver.is_in_transaction()
        if not is_open:
            raise WrongConnection("no transaction is open on this connection: begin one, or turn autocommit off")


class _Session:
    def __init__(self, connection: Connection, pipeline: psycopg.Pipeline | None = None) -> None:
        self._connection, self._pipeline = connection, pipeline

    def put(self, text: str, values: Any) -> None:
        _cursor(self._connection).execute(text, values)

    def execute(self, text: str, values: Any) -> Result:
        cursor = _cursor(self._connection)
        cursor.execute(text, values)
        if self._pipeline is not None:
            self._pipeline.sync()
        return _result(cursor)


class _PooledStatement:
    """A single statement behind a pooler, in a transaction that sets the isolation in the same round trip."""

    def __init__(self, dialect: PostgresDialect, connection: Connection) -> None:
        self._dialect, self._connection = dialect, connection

    def put(self, text: str, values: Any) -> None:
        self.execute(text, values)

    def execute(self, text: str, values: Any) -> Result:
        try:
            with self._connection.pipeline():
                self._connection.execute(_BEGIN)
                cursor = _cursor(self._connection)
                cursor.execute(text, values)
                self._connection.execute("commit")
            return _result(cursor)
        except BaseException:
            self._dialect.rollback(self._connection)
            raise


class _AsyncSession:
    """A session on a caller's async psycopg connection, used inside SQLAlchemy's `run_sync`."""

    def __init__(self, connection: psycopg.AsyncConnection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def put(self, text: str, values: Any) -> None:
        self.execute(text, values)

    def execute(self, text: str, values: Any) -> Result:
        from sqlalchemy.util import await_only

        cursor = psycopg.AsyncCursor(self._connection, row_factory=psycopg.rows.tuple_row)
        cursor.format = psycopg.pq.Format.BINARY
        await_only(cursor.execute(text, values))
        if cursor.description is None:
            return (), [], cursor.rowcount
        rows = await_only(cursor.fetchall())
        return rows, [column.name for column in cursor.description], len(rows)


def _of_psycopg(error: Exception) -> Exception:
    """Return psycopg's equivalent of an asyncpg error that SQLAlchemy has wrapped; any other error unchanged."""
    original = getattr(error, "orig", None)
    with contextlib.suppress(KeyError):
        return errors.lookup(getattr(original, "sqlstate", None) or "")(str(original))
    return error


def _cursor(connection: Connection) -> psycopg.Cursor[tuple[Any, ...]]:
    """Return a cursor with binary results and plain rows, whatever the cursor class of a caller's connection is."""
    cursor = psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row)
    cursor.format = psycopg.pq.Format.BINARY
    return cursor


def _result(cursor: psycopg.Cursor[tuple[Any, ...]]) -> Result:
    if cursor.description is None:
        return (), [], cursor.rowcount
    rows = cursor.fetchall()
    return rows, [column.name for column in cursor.description], len(rows)


def _set_config(settings: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return one statement that sets all of these for the session."""
    each = ", ".join("set_config(%s, %s, false)" for _ in settings)
    return f"select {each}", [part for setting in settings.items() for part in setting]


@lru_cache(maxsize=4096)  # a batch contains the same instant many times
def _isoformat(value: datetime) -> str:
    return value.isoformat()


def _milliseconds(duration: timedelta) -> int:
    return int(duration / timedelta(milliseconds=1))


def _payload(names: set[str]) -> str:
    """Return the names as one payload. If it is too long for NOTIFY, return an empty one, which means all names."""
    text = ",".join(sorted(names))
    return text if len(text) < 4000 else ""
