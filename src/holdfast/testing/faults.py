"""Faults: make chosen transactions fail, so that a test can check how code handles database errors.

faults = Faults(hf)
faults.next(Fault.BUSY)                       the next write finds the database locked and writes nothing
faults.next(Fault.UNAVAILABLE, skip=2)        two writes succeed, the third can't reach the database
faults.next(Fault.REPLY_LOST, times=3)        three writes are committed, but raise an error

Each call adds to the plan of the earlier calls. Reads never fail.
"""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from enum import Enum
from typing import Any

from holdfast.app import Holdfast
from holdfast.store.dialects.base import Session
from holdfast.support.errors import StoreBusy, StoreUnavailable


class Fault(Enum):
    """An error of the database or of the connection to it."""

    BUSY = "the database is locked: nothing is written"
    UNAVAILABLE = "the database can't be reached: nothing is written"
    REPLY_LOST = "the commit goes through, but its reply is lost with the connection"


class Faults:
    """Makes writes of one Holdfast fail. If the reply to a commit is lost, its notifications are lost, too."""

    def __init__(self, hf: Holdfast) -> None:
        dialect = hf.store.dialect
        self._begin, self._commit = dialect.begin, dialect.commit
        self._plan: deque[Fault | None] = deque()
        self._open: dict[int, tuple[Fault | None, bool]] = {}
        dialect.begin = self._beginning  # type: ignore[method-assign]
        dialect.commit = self._committing  # type: ignore[method-assign]

    def next(self, fault: Fault, *, skip: int = 0, times: int = 1) -> None:
        """Let `skip` writes succeed, then make the next `times` writes fail."""
        self._plan.extend([None] * skip + [fault] * times)

    def before(self, *, write: bool) -> Fault | None:
        """Return the fault of a transaction, before it begins. A subclass may choose faults without a plan."""
        return self._plan.popleft() if write and self._plan else None

    def after(self, *, write: bool) -> None:
        """Do nothing. A subclass may act after a commit, before the caller continues."""

    def _beginning(self, connection: Any, *, write: bool, **patience: timedelta | None) -> Session:
        fault = self.before(write=write)
        if fault is Fault.BUSY:
            raise StoreBusy("injected fault: the database is locked")
        if fault is Fault.UNAVAILABLE:
            raise StoreUnavailable("injected fault: the database can't be reached")
        session = self._begin(connection, write=write, **patience)
        self._open[id(connection)] = (fault, write)
        return session

    def _committing(self, connection: Any) -> None:
        self._commit(connection)
        fault, write = self._open.pop(id(connection), (None, False))
        self.after(write=write)
        if fault is Fault.REPLY_LOST:
            raise StoreUnavailable("injected fault: committed, but the reply was lost")
