"""SQL Server 2016 and newer (OPENJSON needs compatibility level 130), with Microsoft's own driver, mssql-python.

A caller's connection, or an engine's, may be one of pyodbc as well: the same DB-API over the same ODBC driver.

Right with READ_COMMITTED_SNAPSHOT on and off. Where rows may be passed by, a statement says so by `readpast`, and adds
`readcommittedlock`, without which the former is refused where the option is on.
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
LOOK_OFTEN, LOOK_SELDOM = 0.05, 1.0
LOGIN_TIMEOUT = 10
AGAIN = 3  # how often a statement may meet a duplicate in a caller's transaction

# Of an error mssql-python tells only a text of its own for each SQLSTATE; the number is nowhere.
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
# States of a connection that is gone (IMC: it broke while idle and could not be made anew), and what the server or the
# driver says in a state of another meaning.
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
            # English, because we know some errors by their words only.
            _execute(connection, f"set language us_english; {self._settings(self._busy_timeout)}")
            return connection
        except Exception as error:
            if "Failed to load the driver" in str(error):
                raise InvalidSetting(
                    "url: the ODBC driver inside mssql-python misses a library of the system: install libltdl "
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
        # `begin transaction`, not the driver's autocommit: after an error that undid the transaction on the server,
        # our `commit` then fails, where the driver's would pass in silence. And inside a transaction that was left
        # open, ours would be nested, and its commit none.
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
        """By SQLSTATE where it is enough, by the message where it is not (we have set the language to English).

        40001  1205, a deadlock: do it again
        23000  2601 and 2627 say "duplicate key": someone inserted what was not there a moment ago, do it again;
               515 names created_at where a queue is bounded and its seats were not counted: do it again
        HYT00  1222, a lock not given in time, or a statement that took too long; or a login that did: that is another
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
            return StoreBusy("the database did not give a lock, or an answer, in time; nothing was written")
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
            advice.append(
                "READ_COMMITTED_SNAPSHOT is off: who lists runs or verifies may wait for another's transaction"
            )
        driver = type(connection).__module__.partition(".")[0]
        version = mssql_python.__version__ if driver == "mssql_python" else ""
        return About(server=f"SQL Server {row[0]}", driver=f"{driver} {version}".strip(), advice=tuple(advice))

    def server_time(self, connection: Any, clock: Clock) -> datetime:
        now: datetime = _execute(connection, "select sysutcdatetime()")[0][0][0]
        return now.replace(tzinfo=UTC)

    # As text: an aware datetime would be sent as a datetimeoffset, and indexes on datetime2 be of no use. The `T` is
    # what OPENJSON reads whatever the language.

    def instant(self, value: datetime) -> object:
        return self.instant_text(value)

    def instant_text(self, value: datetime) -> str:
        return json_text.instant_text(value).replace(" ", "T")

    def parse_instant(self, value: Any) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)

    listens = True

    def listen(self, connection: Any, stopping: threading.Event, own: Callable[[], int]) -> Iterator[set[str]]:
        """Nothing is told by the server, so look often while there is work, and less and less when there is none."""
        pause, ours = LOOK_OFTEN, own()
        while not stopping.wait(pause):
            if own() != ours:
                pause, ours = LOOK_OFTEN, own()
            else:
                pause = min(pause * 2, LOOK_SELDOM)
            if pause < LOOK_SELDOM:  # from there on the tick is as good
                yield {""}

    def join(self, caller: Caller) -> tuple[Session, Style]:
        driver, above = caller.driver, caller.sqlalchemy
        if type(driver).__module__.startswith(DRIVERS) and hasattr(driver, "cursor"):
            return _JoinedSession(driver), "qmark"
        if above is not None and (above.dialect.name, above.dialect.driver) == ("mssql", "aioodbc"):
            return SqlAlchemySession(above), "qmark"
        return super().join(caller)

    def elsewhere(self, ours: Row, theirs: Row) -> str:
        if (theirs["server"], theirs["name"]) == (ours["server"], ours["name"]):
            return f"database {theirs['name']}, but does not find the store's tables: its user or schema differs"
        return f"database {theirs['name']} of {theirs['server']}, the store is {ours['name']} of {ours['server']}"

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
    """A caller's transaction.

    A duplicate there undoes our statement alone: said again, it sees what someone else has committed meanwhile. Unless
    the caller has set XACT_ABORT: then its transaction is gone, and writing on would be writing outside of it.
    """

    def execute(self, text: str, values: Any) -> Result:
        for left in range(AGAIN, 0, -1):
            try:
                return super().execute(text, values)
            except Exception as error:
                if not _is_duplicate(error):
                    raise
                if left == 1 or _execute(self._connection, "select xact_state()")[0][0][0] != 1:
                    raise StoreBusy("someone else submits the same run at this moment; try again") from error
        raise AssertionError


def connection_string(url: str) -> str:
    """`mssql://user:password@host:port/database?Option=value` in ODBC's words.

    Each value stands in braces, so that none can end early and begin another.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidSetting(f"url: {error}") from None
    database = unquote(parts.path.removeprefix("/"))
    if not host or not database:
        raise InvalidSetting("url: mssql://user:password@host:port/database names a host and a database")
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
        raise InvalidSetting("url: a NUL character can't be part of it")
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
    """To the end of the answer: an error may come after the rows of an `output`."""
    while cursor.nextset():
        pass


def _is_driver_error(error: Exception) -> bool:
    if isinstance(error, RuntimeError):  # raised below mssql-python, where a statement is allocated
        return _UNMAPPED.match(str(error)) is not None or "Connection handle not allocated" in str(error)
    return any(base.__module__.startswith(DRIVERS) for base in type(error).__mro__)


def _is_duplicate(error: Exception) -> bool:
    return _is_driver_error(error) and _state(error) == "23000" and "duplicate key" in str(error)


def _is_refusal(error: Exception) -> bool:
    """Whether the login is wrong (18456). While the server starts, it refuses any login and adds the reason (18401)."""
    text = str(error)
    return _is_driver_error(error) and "Login failed for user" in text and "Reason:" not in text


def _state(error: Exception) -> str:
    """The SQLSTATE of a driver's error, or nothing."""
    if told := STATES.get(getattr(error, "driver_error", "")):
        return told
    if found := _UNMAPPED.search(str(error)):
        return found[1]
    first = error.args[0] if error.args else ""
    return first if isinstance(first, str) and len(first) == 5 else ""  # pyodbc
