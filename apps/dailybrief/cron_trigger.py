"""Cron trigger: APScheduler's trigger, corrected for the days when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

FIELDS = ("second", "minute", "hour", "day", "month", "day_of_week")


class WallClockTrigger(CronTrigger):  # type: ignore[misc]
    """A cron expression of five fields, or six with seconds first, in the local time of a zone.

    When clocks go back, one hour occurs twice. APScheduler fires in both hours, which is right for a job every ten
    minutes but wrong for a daily job. This trigger, if its hour and minute are fixed, fires only in the first hour.
    """

    def __init__(self, expression: str, zone: ZoneInfo) -> None:
        given = expression.split()
        if len(given) not in (5, 6):
            raise ValueError(f"{expression!r} is not a cron expression; write five fields, or six with seconds first")
        fields = dict(zip(FIELDS, given if len(given) == 6 else ["0", *given], strict=True))
        if any(character.isdigit() for character in fields["day_of_week"]):
            raise ValueError(
                f"{expression!r} has a weekday number, which cron and APScheduler count differently; "
                "write weekdays by name (mon, tue)"
            )
        self._fixed = "*" not in fields["hour"] + fields["minute"]
        self._expression, self._zone = expression, zone
        super().__init__(timezone=zone, **fields)

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        found: datetime | None = super().get_next_fire_time(previous_fire_time, now)
        while found is not None and self._fixed and found.fold:
            # Continue in UTC: in local time, a time after the second 02:30 would count as one after the first.
            found = super().get_next_fire_time(None, found.astimezone(UTC) + timedelta(microseconds=1))
        return found

    def __str__(self) -> str:
        return f"cron {self._expression} {self._zone}"
