"""Faults: breaks chosen transactions, so that a test sees what its code does when the database lets it down.

faults = Faults(hf)
faults.next(Fault.BUSY)                       the next write finds the database locked; nothing is written
faults.next(Fault.UNAVAILABLE, skip=2)        two writes go through, the third finds no database
faults.next(Fault.REPLY_LOST, times=3)        three writes are committed, and the caller is told that they failed

Each call adds to the plan of those before it. Reading is never broken.
"""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from enum import Enum
from typing import Any

from holdfast.engine import Holdfast
from holdfast.store.dialects.base import Session
from holdfast.support.errors import StoreBusy, StoreUnavailable


class Fault(Enum):
    """What can go wrong between us and the database."""

    BUSY = "the database is locked: nothing is written"
    UNAVAILABLE = "the database can't be reached: nothing is written"
    REPLY_LOST = "the commit goes through, but its reply is lost with the connection"


class Faults:
    """Stands between one Holdfast and its database. Rings of a commit whose reply is lost are lost with it."""

    def __init__(self, hf: Holdfast) -> None:
        dialect = hf.store.dialect
        self._begin, self._commit = dialect.begin, dialect.commit
        self._plan: deque[Fault | None] = deque()
        self._open: dict[int, tuple[Fault | None, bool]] = {}
        dialect.begin = self._beginning  # type: ignore[method-assign]
        dialect.commit = self._committing  # type: ignore[method-assign]

    def next(self, fault: Fault, *, skip: int = 0, times: int = 1) -> None:
        """Let `skip` writes pass, then break so many."""
        self._plan.extend([None] * skip + [fault] * times)

    def before(self, *, write: bool) -> Fault | None:
        """Called before a transaction begins: what becomes of it. A subclass may decide otherwise than by a plan."""
        return self._plan.popleft() if write and self._plan else None

    def after(self, *, write: bool) -> None:
        """Called when a transaction has been committed and no one has been told yet."""

    def _beginning(self, connection: Any, *, write: bool, **patience: timedelta | None) -> Session:
        fault = self.before(write=write)
        if fault is Fault.BUSY:
            raise StoreBusy("a fault: the database is locked")
        if fault is Fault.UNAVAILABLE:
            raise StoreUnavailable("a fault: the database can't be reached")
        session = self._begin(connection, write=write, **patience)
        self._open[id(connection)] = (fault, write)
        return session

    def _committing(self, connection: Any) -> None:
        self._commit(connection)
        fault, write = self._open.pop(id(connection), (None, False))
        self.after(write=write)
        if fault is Fault.REPLY_LOST:
            raise StoreUnavailable("a fault: committed, but the reply was lost")
