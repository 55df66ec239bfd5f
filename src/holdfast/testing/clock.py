"""A clock that a test sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Stands still until told. `advance` is time going by; `step` is a clock that was set wrong or right."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 1_000_000.0
        self._settled_since = self._elapsed - 1_000_000.0

    def now(self) -> datetime:
        """The time that the test has set."""
        return self._now

    def elapsed(self) -> float:
        """Seconds that went by; a `step` adds none."""
        return self._elapsed

    def wall(self) -> datetime:
        """The same as `now`: host and database agree."""
        return self._now

    def follow(self, theirs: datetime, *, asked: float, answered: float) -> None:
        """The test is the authority: a database's opinion does not count."""

    def settled_for(self) -> timedelta:
        """How much time went by since the last `step`."""
        return timedelta(seconds=self._elapsed - self._settled_since)

    def advance(self, by: timedelta | float) -> None:
        """Let so much time go by (a duration, or seconds)."""
        by = by if isinstance(by, timedelta) else timedelta(seconds=by)
        self._now += by
        self._elapsed += by.total_seconds()

    def step(self, by: timedelta) -> None:
        """The time jumps, and no time has gone by."""
        self._now += by
        self._settled_since = self._elapsed
