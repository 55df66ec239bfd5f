"""SQL Server 2016 and newer (OPENJSON needs compatibility level 130), with Microsoft's own driver, mssql-python.

A caller's or an engine's connection may also use pyodbc, which has the same DB-API on top of the same ODBC driver.

The statements are correct with READ_COMMITTED_SNAPSHOT on and off. A statement that may skip locked rows uses
`readpast`, together with `readcommittedlock`: with the option on, SQL Server refuses `readpast` alone.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import mssql_python

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
from holdfast.store.transaction import Row
from holdfast.support import json_text
from holdfast.support.clock import Clock
from holdfast.support.errors import InvalidSetting, StoreBusy, StoreRefused, StoreUnavailable, WrongConnection

DRIVERS = ("mssql_python", "pyodbc")
LOOK_OFTEN, LOOK_SELDOM = 0.05, 1.0  # seconds between two polls
LOGIN_TIMEOUT = 10
MAX_TRIES = 3  # how often a statement is tried in a caller's transaction if a key is a duplicate

# mssql-python reports only its own text for each SQLSTATE, not the error number.
STATES = {
    "Integrity constraint violation": "23000",
    "Serialization failure": "40001",
    "Timeout expired": "HYT00",
    "Connection timeout expired": "HYT01",
    "Client unable to establish connection": "08001",
    "Connection name in use": "08002",
    "Connection not open": "08003",
    "Server rejected the connection": "08004",
    "Connection failure during transaction": "08007",
    "Communication link failure": "08S01",
    "Disconnect error": "01002",
    "Invalid authorization specification": "28000",
}
_UNMAPPED = re.compile(r"SQLSTATE(?: code)?:\s?([0-9A-Z]{5})")
# States of a lost connection (IMC: it broke while idle and could not be restored), and messages that the server or the
# driver sends for a lost connection with other states.
_GONE = ("08", "IMC", "28", "01002", "HYT01")
_GONE_TEXTS = (
    "connection is broken",
    "Connection operation failed",
    "Connection handle not allocated",
    "closed connection",
    "in the kill state",
    "SHUTDOWN is in progress",
    "Login timeout expired",
)

OPTIONS = {
    name.lower(): name
    for name in (
        "Encrypt",
        "TrustServerCertificate",
        "HostnameInCertificate",
        "ServerCertificate",
        "ServerSPN",
        "Authentication",
        "Trusted_Connection",
        "MultiSubnetFailover",
        "ApplicationIntent",
        "ConnectRetryCount",
        "ConnectRetryInterval",
        "KeepAlive",
        "KeepAliveInterval",
        "IpAddressPreference",
        "PacketSize",
    )
}


class SqlServerDialect(Dialect):
    name = "sqlserver"
    style = "qmark"
    terminator = "\ngo"

    def __init__(
        self,
        url: str,
        *,
        statement_timeout: timedelta = timedelta(seconds=30),
        busy_timeout: timedelta = timedelta(seconds=10),
        make: Callable[[], Any] | None = None,
    ) -> None:
        self.url = url
        self._connection_string = connection_string(url) if make is None else ""
        self._make = make or self._open
        self._statement_timeout = math.ceil(statement_timeout.total_seconds())
        self._busy_timeout = busy_timeout

    def connect(self) -> Any:
        try:
            connection = self._make()
            connection.autocommit = True
            connection.timeout = self._statement_timeout
            # English, because some errors can only be recognised by their message.
            _execute(connection, f"set language us_english; {self._settings(self._busy_timeout)}")
            return connection
        except Exception as error:
            if "Failed to load the driver" in str(error):
                raise InvalidSetting(
                    "url: the ODBC driver inside mssql-python lacks a system library: install libltdl "
                    "(Debian: libltdl7, Red Hat: libtool-ltdl) and Kerberos (libkrb5-3, krb5-libs)"
                ) from error
            if _is_refusal(error):
                raise StoreRefused(f"SQL Server refuses the connection: {first_line(error)}") from error
            if _is_driver_error(error):
                raise StoreUnavailable(f"SQL Server is not available: {first_line(error)}") from error
            raise

    def _open(self) -> Any:
        return mssql_python.connect(self._connection_string, autocommit=True, timeout=LOGIN_TIMEOUT)

    def _settings(self, wait: timedelta) -> str:
        return (
            "set xact_abort on; set transaction isolation level read committed; "
            f"set lock_timeout {int(wait / timedelta(milliseconds=1))}"
        )

    def begin(
        self,
        connection: Any,
        *,
        write: bool,
        patience: timedelta | None = None,
        own_patience: timedelta | None = None,
    ) -> Session:
        # Use `begin transaction`, not the driver's autocommit: if an error rolled the transaction back on the server,
        # this `commit` fails, while the driver's would silently succeed. First end a transaction that was left open:
        # inside it, a new one would be nested, and its commit would do nothing.
        settings = self._settings(self._busy_timeout if patience is None else patience)
        _execute(connection, f"if @@trancount > 0 rollback transaction; {settings}; begin transaction")
        return _Session(connection)

    def alone(self, connection: Any) -> Session:
        return _Session(connection)

    def commit(self, connection: Any) -> None:
        _execute(connection, "commit transaction")

    def rollback(self, connection: Any) -> None:
        _execute(connection, "if @@trancount > 0 rollback transaction")

    def close(self, connection: Any) -> None:
        with contextlib.suppress(Exception):
            connection.close()

    def translate(self, error: Exception) -> Exception:
        """Translate by SQLSTATE, or by the (English) message if the state is ambiguous.

        40001  1205, a deadlock: try again
        23000  2601 and 2627, "duplicate key": another transaction has just inserted the same key, try again;
               515, created_at is null: a queue is bounded but its capacity was not checked, try again
        HYT00  1222, a lock or a statement timed out; or a login timed out, which counts as unavailable
        """
        if not _is_driver_error(error):
            return error
        state, text = _state(error), str(error)
        if state.startswith(_GONE) or any(sign in text for sign in _GONE_TEXTS):
            return StoreUnavailable(f"SQL Server is not available: {first_line(error)}")
        if state == "40001" or _is_duplicate(error):
            return Conflict(text)
        if "column 'created_at'" in text:
            return Conflict(NOT_COUNTED)
        if state == "HYT00" or "Lock request time out" in text:
            return StoreBusy("a lock was not free in time, or a statement took too long; nothing was written")
        if type(error).__name__ == "DataError":
            return Unstorable(text)
        return error

    def about(self, connection: Any) -> About:
        row = _execute(
            connection,
            "select cast(serverproperty('productversion') as nvarchar(100)), d.compatibility_level, "
            "d.is_read_committed_snapshot_on from sys.databases as d where d.name = db_name()",
        )[0][0]
        advice = []
        if row[1] < 130:
            advice.append(f"the database's compatibility level is {row[1]}: 130 or higher is needed")
        if not row[2]:
            advice.append("READ_COMMITTED_SNAPSHOT is off: listing runs and verifying may wait for other transactions")
        driver = type(connection).__module__.partition(".")[0]
        version = mssql_python.__version__ if driver == "mssql_python" else ""
        return About(server=f"SQL Server {row[0]}", driver=f"{driver} {version}".strip(), advice=tuple(advice))

    def server_time(self, connection: Any, clock: Clock) -> datetime:
        now: datetime = _execute(connection, "select sysutcdatetime()")[0][0][0]
        return now.replace(tzinfo=UTC)

    # Instants are sent as text: an aware datetime would become a datetimeoffset, which can't use indexes on datetime2.
    # With the `T`, OPENJSON parses them in any language.

    def instant(self, value: datetime) -> object:
        return self.instant_text(value)

    def instant_text(self, value: datetime) -> str:
        return json_text.instant_text(value).replace(" ", "T")

    def parse_instant(self, value: Any) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)

    listens = True

    def listen(self, connection: Any, stopping: threading.Event, own: Callable[[], int]) -> Iterator[set[str]]:
        """Poll often while this process commits, and less often otherwise: the server sends no notifications."""
        pause, own_commits = LOOK_OFTEN, own()
        while not stopping.wait(pause):
            if own() != own_commits:
                pause, own_commits = LOOK_OFTEN, own()
            else:
                pause = min(pause * 2, LOOK_SELDOM)
            if pause < LOOK_SELDOM:  # beyond that, the poll interval of the workers is enough
                yield {""}

    def join(self, caller: Caller) -> tuple[Session, Style]:
        driver, sqlalchemy = caller.driver, caller.sqlalchemy
        if type(driver).__module__.startswith(DRIVERS) and hasattr(driver, "cursor"):
            return _JoinedSession(driver), "qmark"
        if sqlalchemy is not None and (sqlalchemy.dialect.name, sqlalchemy.dialect.driver) == ("mssql", "aioodbc"):
            return SqlAlchemySession(sqlalchemy), "qmark"
        return super().join(caller)

    def elsewhere(self, ours: Row, theirs: Row) -> str:
        if (theirs["server"], theirs["name"]) == (ours["server"], ours["name"]):
            return f"database {theirs['name']}, but can't see the store's tables: its user or schema differs"
        return f"database {theirs['name']} on {theirs['server']}, but the store uses {ours['name']} on {ours['server']}"

    def enter(self, caller: Caller, session: Session) -> None:
        if not session.execute("select @@trancount", None)[0][0][0] and caller.driver.autocommit:
            raise WrongConnection("no transaction is open on this connection: begin one, or turn autocommit off")


class _Session:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, text: str, values: Any) -> Result:
        return _execute(self._connection, text, values)

    def put(self, text: str, values: Any) -> None:
        self.execute(text, values)


class _JoinedSession(_Session):
    """A session in a caller's transaction.

    A duplicate key undoes only the statement that inserts it. A second try sees the other transaction's row. If the
    caller has set XACT_ABORT, its transaction is rolled back, and further writes would be outside of it.
    """

    def execute(self, text: str, values: Any) -> Result:
        for left in range(MAX_TRIES, 0, -1):
            try:
                return super().execute(text, values)
            except Exception as error:
                if not _is_duplicate(error):
                    raise
                if left == 1 or _execute(self._connection, "select xact_state()")[0][0][0] != 1:
                    raise StoreBusy("another transaction is submitting the same run; try again") from error
        raise AssertionError


def connection_string(url: str) -> str:
    """Translate `mssql://user:password@host:port/database?Option=value` into an ODBC connection string.

    Each value is in braces, so that it can't end early and inject another option.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidSetting(f"url: {error}") from None
    database = unquote(parts.path.removeprefix("/"))
    if not host or not database:
        raise InvalidSetting("url: give a host and a database: mssql://user:password@host:port/database")
    values = {"Server": f"{unquote(host)},{port}" if port else unquote(host), "Database": database}
    if parts.username:
        values |= {"UID": unquote(parts.username), "PWD": unquote(parts.password or "")}
    for name, value in parse_qsl(parts.query):
        if name.lower() == "driver":
            continue  # SQLAlchemy's URLs name one; this driver brings its own
        if name.lower() not in OPTIONS:
            raise InvalidSetting(f"url: unknown option {name!r}; known: {', '.join(OPTIONS.values())}")
        values[OPTIONS[name.lower()]] = value
    if not {"UID", "Authentication", "Trusted_Connection"} & values.keys():
        values["Trusted_Connection"] = "yes"
    if any("\x00" in value for value in values.values()):
        raise InvalidSetting("url: it must not contain a NUL character")
    return ";".join(f"{name}={{{value.replace('}', '}}')}}}" for name, value in values.items() if value)


def _execute(connection: Any, text: str, values: Any = None) -> Result:
    cursor = connection.cursor()
    try:
        if values:
            cursor.execute(text, values)
        else:
            cursor.execute(text)
        if cursor.description is None:
            count = cursor.rowcount
            _drain(cursor)
            return (), [], count
        columns = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
        _drain(cursor)
        return rows, columns, len(rows)
    finally:
        with contextlib.suppress(Exception):
            cursor.close()


def _drain(cursor: Any) -> None:
    """Read the response to its end: an error may follow the rows of an `output`."""
    while cursor.nextset():
        pass


def _is_driver_error(error: Exception) -> bool:
    if isinstance(error, RuntimeError):  # raised by the layer below mssql-python, which allocates statements
        return _UNMAPPED.match(str(error)) is not None or "Connection handle not allocated" in str(error)
    return any(base.__module__.startswith(DRIVERS) for base in type(error).__mro__)


def _is_duplicate(error: Exception) -> bool:
    return _is_driver_error(error) and _state(error) == "23000" and "duplicate key" in str(error)


def _is_refusal(error: Exception) -> bool:
    """Whether the login is wrong (18456). While the server starts, it refuses any login and adds the reason (18401)."""
    text = str(error)
    return _is_driver_error(error) and "Login failed for user" in text and "Reason:" not in text


def _state(error: Exception) -> str:
    """Return the SQLSTATE of a driver's error, or an empty text."""
    if state := STATES.get(getattr(error, "driver_error", "")):
        return state
    if match := _UNMAPPED.search(str(error)):
        return match[1]
    first = error.args[0] if error.args else ""
    return first if isinstance(first, str) and len(first) == 5 else ""  # pyodbc
