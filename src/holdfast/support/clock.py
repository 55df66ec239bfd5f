"""Clock: the only module that reads the wall clock.

`now` is the database's time, so that hosts with wrong clocks agree. It is CLOCK_BOOTTIME plus an offset
that is measured on connect and at every heartbeat. CLOCK_BOOTTIME continues while the machine is suspended,
so a lease that expires during a suspend counts as expired on resume.
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
        """Return the database's time, in UTC."""
        ...

    def elapsed(self) -> float:
        """Return the seconds of a clock that never jumps and also runs while the machine is suspended."""
        ...

    def wall(self) -> datetime:
        """Return this host's own time, which an embedded database uses."""
        ...

    def follow(self, theirs: datetime, *, asked: float, answered: float) -> None:
        """Set `now` to the database's time. It was read between `asked` and `answered`, two values of `elapsed`."""
        ...

    def settled_for(self) -> timedelta:
        """Return how long ago the offset to the database last jumped; `timedelta.max` if it never did."""
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
                return  # within the measurement error: keep the old offset, so that `now` does not jitter
            self._offset = offset

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def settled_for(self) -> timedelta:
        settled = self.elapsed() - self._settled_since
        return timedelta(seconds=settled) if math.isfinite(settled) else timedelta.max
