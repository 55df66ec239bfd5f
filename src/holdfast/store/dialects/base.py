"""Dialect base: the methods that each dialect implements, and defaults that it may keep."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from holdfast.store.queries import Style
from holdfast.support import json_text
from holdfast.support.clock import Clock
from holdfast.support.errors import BackupFailed, HoldfastError, WrongConnection

if TYPE_CHECKING:
    from holdfast.store.dialects.backup import Backup, Progress
    from holdfast.store.transaction import Row, Transaction

Result = tuple[Sequence[Sequence[Any]], list[str], int]
NOT_COUNTED = "a queue is bounded, but its capacity was not checked"


class Conflict(Exception):
    """The database rolled the transaction back because of a deadlock or a race: try it again."""


class Unstorable(Exception):
    """The database refused a value of the statement: trying again is pointless."""


def first_line(error: Exception) -> str:
    """Return the first line of a driver's error."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


class Session(Protocol):
    """One connection while a transaction is open on it."""

    def execute(self, text: str, values: object) -> Result: ...

    def put(self, text: str, values: object) -> None:
        """Execute without waiting for the result; a later statement or the commit may raise the error."""


class SqlAlchemySession:
    """A session on a SQLAlchemy Connection, which may use an async driver."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, text: str, values: object) -> Result:
        result = self._connection.exec_driver_sql(text, values)
        if not result.returns_rows:
            return (), [], result.rowcount
        rows = result.fetchall()
        return rows, list(result.keys()), len(rows)

    def put(self, text: str, values: object) -> None:
        self._connection.exec_driver_sql(text, values)


@dataclass(frozen=True)
class Caller:
    """A caller's connection: the driver's own, and the SQLAlchemy Connection that uses it, if there is one."""

    driver: Any
    sqlalchemy: Any = None


@dataclass(frozen=True, kw_only=True)
class About:
    """The server and the driver of a connection; `advice` lists settings to improve."""

    server: str
    driver: str
    advice: tuple[str, ...] = ()


class Dialect(ABC):
    name: ClassVar[str]
    terminator: ClassVar[str] = ";"
    """The text that ends a statement in the database's own shell."""
    style: ClassVar[Style]
    parses_instants: ClassVar[bool] = True
    has_schemas: ClassVar[bool] = True
    locks_rows: ClassVar[bool] = True
    """Whether transactions lock single rows, so that one can wait for a row while others continue."""
    one_writer: ClassVar[bool] = False
    """Whether writers of one process should take turns on one connection."""

    @abstractmethod
    def connect(self) -> Any: ...

    @abstractmethod
    def begin(
        self,
        connection: Any,
        *,
        write: bool,
        patience: timedelta | None = None,
        own_patience: timedelta | None = None,
    ) -> Session:
        """Begin a transaction; `patience` replaces `busy_timeout` as the longest wait for a lock.

        `own_patience` is the longest wait for a lock that this process itself holds, if the database can tell.
        """

    @abstractmethod
    def alone(self, connection: Any) -> Session:
        """Return a session for a single statement, which is a transaction by itself."""

    def commit(self, connection: Any) -> None:
        connection.commit()

    def rollback(self, connection: Any) -> None:
        connection.rollback()

    def committed(self, connection: Any) -> None:
        """Called after each commit that wrote something."""

    def checkpoint(self, connection: Any) -> None:
        """Copy the write-ahead log into the database, if that is the client's task."""

    def is_open(self, connection: Any) -> bool:
        """Whether the connection can be used again; a rollback may have closed it."""
        return True

    def close(self, connection: Any) -> None:
        connection.close()

    def backup(self, connection: Any, path: Path, *, progress: Progress) -> Backup:
        """Copy the database to a new file while it is in use."""
        raise BackupFailed(f"backup is for SQLite; use the tools of {self.name} (pg_dump, BACKUP DATABASE)")

    def before_fork(self) -> None:
        """Called in the parent before a fork, if `one_writer` is true."""

    def after_fork_in_parent(self) -> None:
        """Called in the parent after a fork, if `one_writer` is true."""

    def after_fork_in_child(self, inherited: list[Any]) -> None:
        """Called once in a forked child, with its parent's idle connections, which the child must not use."""

    @abstractmethod
    def translate(self, error: Exception) -> Exception:
        """Return the Holdfast error for a driver's error, or the error itself."""

    @property
    def unsafe(self) -> HoldfastError | None:
        """The error to raise if this process must not write any more and has to end; None if it may write."""
        return None

    def problem_of(self, pid: int) -> str | None:
        """Say why another process of this host must not write any more; None if no reason is visible."""
        return None

    def warnings(self) -> tuple[str, ...]:
        """Return the warnings that a worker or server logs when it starts."""
        return ()

    def about(self, connection: Any) -> About:
        """Return the versions of the server and the driver."""
        return About(server=self.name, driver=type(connection).__module__)

    @abstractmethod
    def server_time(self, connection: Any, clock: Clock) -> datetime: ...

    @abstractmethod
    def instant(self, value: datetime) -> object:
        """Return an instant as a statement's parameter."""

    @abstractmethod
    def instant_text(self, value: datetime) -> str:
        """Return an instant as text in the JSON of a list."""

    @abstractmethod
    def parse_instant(self, value: Any) -> datetime | None: ...

    url: str
    """The URL with which another process can open the same database."""

    announces: ClassVar[bool] = False
    """Whether a process can notify others through this database."""

    listens: ClassVar[bool] = False
    """Whether a process can learn of the commits of others through this database."""

    def listen(self, connection: Any, stopping: threading.Event, own: Callable[[], int]) -> Iterator[set[str]]:
        """Yield the names that other processes notify, until `stopping` is set; `own` counts this process's commits."""
        return iter(())

    def announce(self, connection: Any, names: set[str]) -> None:
        """Wake the threads of other processes that wait for these names."""

    def announce_joined(self, tx: Transaction) -> None:
        """Wake other processes when the caller's transaction is committed."""

    def join(self, caller: Caller) -> tuple[Session, Style]:
        """Return a session on a caller's connection, and its driver's parameter style; refuse an unsupported driver.

        It checks nothing else: the store then compares the databases, and `enter` checks for a transaction.
        """
        kind = type(caller.driver)
        raise WrongConnection(f"connections of {kind.__module__}.{kind.__qualname__} are not supported")

    def elsewhere(self, ours: Row, theirs: Row) -> str:
        """Say how the database of a caller's connection differs from the store's. Both are rows of `find_database`."""
        return f"{theirs['name']}, but the store uses {ours['name']}"

    @abstractmethod
    def enter(self, caller: Caller, session: Session) -> None:
        """Raise WrongConnection unless a transaction is open that the caller's commit and rollback end."""

    def bind(self, value: object, columns: tuple[str, ...] = ()) -> object:
        """Return a value in the driver's format. A list becomes JSON; with `columns`, its rows become arrays."""
        if isinstance(value, datetime):
            return self.instant(value)
        if isinstance(value, list):
            return json_text.rows(value, columns, self.instant_text)
        return value
