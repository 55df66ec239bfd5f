"""Fake clock: a clock that a test advances."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FakeClock:
    """A clock that stands still. `advance` lets time pass; `jump` sets the clock, as when its time is corrected."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 1_000_000.0
        self._settled_since = self._elapsed - 1_000_000.0

    def now(self) -> datetime:
        """Return the time that the test has set."""
        return self._now

    def elapsed(self) -> float:
        """Return the seconds that have passed; a `jump` adds none."""
        return self._elapsed

    def wall(self) -> datetime:
        """Return the same as `now`: the clocks of host and database agree."""
        return self._now

    def follow(self, theirs: datetime, *, asked: float, answered: float) -> None:
        """Ignore the time of the database: the test sets the time."""

    def settled_for(self) -> timedelta:
        """Return how much time has passed since the last `jump`."""
        return timedelta(seconds=self._elapsed - self._settled_since)

    def advance(self, by: timedelta | float) -> None:
        """Let time pass, given as a timedelta or in seconds."""
        by = by if isinstance(by, timedelta) else timedelta(seconds=by)
        self._now += by
        self._elapsed += by.total_seconds()

    def jump(self, by: timedelta) -> None:
        """Set the clock forward or back without letting time pass."""
        self._now += by
        self._settled_since = self._elapsed
