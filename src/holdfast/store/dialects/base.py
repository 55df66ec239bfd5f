"""What every dialect answers, and what it may leave as it is."""

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
NOT_COUNTED = "a queue is bounded, and its seats were not counted"


class Conflict(Exception):
    """The database undid the transaction to resolve a deadlock or a race: doing it again is right."""


class Unstorable(Exception):
    """The database refused a value, not the statement: saying it again is of no use."""


def first_line(error: Exception) -> str:
    """What a driver's error says, in one line."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


class Session(Protocol):
    """One connection while a transaction is open on it."""

    def execute(self, text: str, values: object) -> Result: ...

    def put(self, text: str, values: object) -> None:
        """Execute, and need no answer; an error may come with a later statement or with the commit."""


class SqlAlchemySession:
    """A SQLAlchemy Connection, which may sit on an async driver."""

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
    """A caller's connection: the driver's own, and the SQLAlchemy Connection above it, if there is one."""

    driver: Any
    sqlalchemy: Any = None


@dataclass(frozen=True, kw_only=True)
class About:
    """What a connection leads to; `advice` says what could be better."""

    server: str
    driver: str
    advice: tuple[str, ...] = ()


class Dialect(ABC):
    name: ClassVar[str]
    terminator: ClassVar[str] = ";"
    """What ends a statement in the database's own shell."""
    style: ClassVar[Style]
    parses_instants: ClassVar[bool] = True
    has_schemas: ClassVar[bool] = True
    locks_rows: ClassVar[bool] = True
    """Whether one may wait for a row that someone else has locked while others go on."""
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
        """Begin; `patience` replaces `busy_timeout` as the longest wait for a lock.

        `own_patience` is the longest wait for a lock that this process itself holds, where that can be known.
        """

    @abstractmethod
    def alone(self, connection: Any) -> Session:
        """A session for one statement, which is a transaction by itself."""

    def commit(self, connection: Any) -> None:
        connection.commit()

    def rollback(self, connection: Any) -> None:
        connection.rollback()

    def committed(self, connection: Any) -> None:
        """Called after each commit that wrote something."""

    def checkpoint(self, connection: Any) -> None:
        """Copy the write-ahead log into the database, where that is the client's work."""

    def is_open(self, connection: Any) -> bool:
        """Whether it can be used again; one that a rollback has closed can't."""
        return True

    def close(self, connection: Any) -> None:
        connection.close()

    def backup(self, connection: Any, path: Path, *, progress: Progress) -> Backup:
        """Copy the database to a new file while it is in use."""
        raise BackupFailed(f"this is for SQLite; {self.name} has tools of its own (pg_dump, BACKUP DATABASE)")

    def before_fork(self) -> None:
        """Called in the parent before a fork, where writers take turns."""

    def after_fork_in_parent(self) -> None:
        """Called in the parent after a fork, where writers take turns."""

    def after_fork_in_child(self, inherited: list[Any]) -> None:
        """Called once in a forked child, with the idle connections of its parent, which it must not speak on."""

    @abstractmethod
    def translate(self, error: Exception) -> Exception:
        """The driver's error as one of ours, or itself."""

    @property
    def unsafe(self) -> HoldfastError | None:
        """Why this process may write no more, if that is so; it must end."""
        return None

    def problem_of(self, pid: int) -> str | None:
        """Why another process of this host may write no more, as far as that can be seen."""
        return None

    def warnings(self) -> tuple[str, ...]:
        """What a worker or server should say once when it starts."""
        return ()

    def about(self, connection: Any) -> About:
        """Versions of the server and of the driver."""
        return About(server=self.name, driver=type(connection).__module__)

    @abstractmethod
    def server_time(self, connection: Any, clock: Clock) -> datetime: ...

    @abstractmethod
    def instant(self, value: datetime) -> object:
        """An instant as a statement's parameter."""

    @abstractmethod
    def instant_text(self, value: datetime) -> str:
        """An instant inside the JSON of a list."""

    @abstractmethod
    def parse_instant(self, value: Any) -> datetime | None: ...

    url: str
    """Where another process finds the same database."""

    announces: ClassVar[bool] = False
    """Whether it can wake other processes."""

    listens: ClassVar[bool] = False
    """Whether it can be woken by other processes."""

    def listen(self, connection: Any, stopping: threading.Event, own: Callable[[], int]) -> Iterator[set[str]]:
        """The names that other processes notify, until told to stop; `own` counts this process's commits."""
        return iter(())

    def announce(self, connection: Any, names: set[str]) -> None:
        """Wake other processes that wait for these names."""

    def announce_joined(self, tx: Transaction) -> None:
        """Wake them when the caller's transaction is committed."""

    def join(self, caller: Caller) -> tuple[Session, Style]:
        """A session on a caller's connection, and how its driver takes parameters; refuses a driver it does not know.

        Checks nothing else: the store then compares the databases, and `enter` looks for a transaction.
        """
        kind = type(caller.driver)
        raise WrongConnection(f"{kind.__module__}.{kind.__qualname__} can't be joined")

    def elsewhere(self, ours: Row, theirs: Row) -> str:
        """Which database a caller's connection is to, if it is not the store's. Both are rows of `find_database`."""
        return f"{theirs['name']}, the store is {ours['name']}"

    @abstractmethod
    def enter(self, caller: Caller, session: Session) -> None:
        """Raise WrongConnection unless a transaction is open that the caller's commit and rollback end."""

    def bind(self, value: object, columns: tuple[str, ...] = ()) -> object:
        """A value as the driver takes it; a list is JSON, its rows arrays of `columns` where a statement wants that."""
        if isinstance(value, datetime):
            return self.instant(value)
        if isinstance(value, list):
            return json_text.rows(value, columns, self.instant_text)
        return value
