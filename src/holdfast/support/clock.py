"""Clock: the only file that asks the time.

`now` is the database's time, so that hosts with wrong clocks agree: it is CLOCK_BOOTTIME plus an offset
that is measured on connect and at every heartbeat. CLOCK_BOOTTIME goes on while the machine is suspended,
so a lease that ran out in its sleep is seen to have run out.
"""

from __future__ import annotations

import math
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from holdfast.support.atfork import on_fork

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JUMP = timedelta(seconds=1)

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    def now(self) -> datetime:
        """The database's time, in UTC."""
        ...

    def elapsed(self) -> float:
        """Seconds of a clock that never jumps and never stops, not even in suspend."""
        ...

    def wall(self) -> datetime:
        """This host's own opinion of the time: what an embedded database goes by."""
        ...

    def follow(self, theirs: datetime, *, asked: float, answered: float) -> None:
        """Take over the database's time, read between two values of `elapsed`."""
        ...

    def settled_for(self) -> timedelta:
        """How long ago the offset to the database last jumped; for ever, if it never did."""
        ...


class SystemClock:
    def __init__(self) -> None:
        self._renew()
        on_fork(self._renew)
        self._offset: timedelta | None = None
        self._settled_since = -math.inf

    def now(self) -> datetime:
        offset = self._offset
        if offset is None:
            return self.wall()
        return EPOCH + offset + timedelta(seconds=self.elapsed())

    def elapsed(self) -> float:
        return time.clock_gettime(_BOOT)

    def wall(self) -> datetime:
        return datetime.now(UTC)

    def follow(self, theirs: datetime, *, asked: float, answered: float) -> None:
        offset = theirs - EPOCH - timedelta(seconds=(asked + answered) / 2)
        with self._lock:
            uncertain = timedelta(seconds=answered - asked)
            if self._offset is not None and abs(offset - self._offset) > JUMP + uncertain:
                self._settled_since = answered
            elif self._offset is not None and abs(offset - self._offset) <= uncertain / 2:
                return  # the measurement can't tell them apart: keep `now` smooth
            self._offset = offset

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def settled_for(self) -> timedelta:
        settled = self.elapsed() - self._settled_since
        return timedelta(seconds=settled) if math.isfinite(settled) else timedelta.max
