"""Cron trigger: APScheduler's, right also on the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

FIELDS = ("second", "minute", "hour", "day", "month", "day_of_week")


class WallClock(CronTrigger):  # type: ignore[misc]
    """Five fields of cron, or six with seconds first, by the clock on the wall of a zone.

    When clocks go back an hour comes twice. APScheduler fires in both, which is right for every ten minutes and wrong
    for once a day: a trigger whose hour and minute are fixed keeps the first.
    """

    def __init__(self, expression: str, zone: ZoneInfo) -> None:
        given = expression.split()
        if len(given) not in (5, 6):
            raise ValueError(f"{expression!r} is no time: five fields of cron, or six with seconds first")
        fields = dict(zip(FIELDS, given if len(given) == 6 else ["0", *given], strict=True))
        if any(sign.isdigit() for sign in fields["day_of_week"]):
            raise ValueError(f"{expression!r}: write weekdays by name (mon, tue); their numbers mean different things")
        self._fixed = "*" not in fields["hour"] + fields["minute"]
        self._expression, self._zone = expression, zone
        super().__init__(timezone=zone, **fields)

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        found: datetime | None = super().get_next_fire_time(previous_fire_time, now)
        while found is not None and self._fixed and found.fold:
            # In UTC: on the wall, a moment after the second 02:30 is a moment after the first.
            found = super().get_next_fire_time(None, found.astimezone(UTC) + timedelta(microseconds=1))
        return found

    def __str__(self) -> str:
        return f"cron {self._expression} {self._zone}"
