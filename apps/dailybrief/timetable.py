"""Timetable: when each job is due, and on which terms.

    rss_ingestion      reads the feeds
    event_clustering   groups what came
    retention_cleanup  deletes what is old
    publish_brief      publishes the brief of the day; the last one

APScheduler's triggers say the times; the engine claims each (job, time) once and keeps every claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

from apps.dailybrief.settings import Settings
from holdfast import Holdfast, Job

QUEUE = "dailybrief"
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
            found = super().get_next_fire_time(found, found + timedelta(microseconds=1))
        return found

    def __str__(self) -> str:
        return f"cron {self._expression} {self._zone}"


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A job's times; `expected` is the longest that it should take, and after twice that it is stopped."""

    name: str
    at: str
    expected: timedelta
    coalesce: bool
    misfire_grace: timedelta


def plan(settings: Settings) -> tuple[Planned, ...]:
    """All four, in the order of a day."""
    jobs = (
        ("rss_ingestion", settings.ingestion_at, settings.ingestion_expected),
        ("event_clustering", settings.clustering_at, settings.clustering_expected),
        ("retention_cleanup", settings.retention_at, settings.retention_expected),
        ("publish_brief", settings.publishing_at, settings.publishing_expected),
    )
    return tuple(
        Planned(name=name, at=at, expected=expected, coalesce=settings.coalesce, misfire_grace=settings.misfire_grace)
        for name, at, expected in jobs
    )


def put(hf: Holdfast, planned: Planned, zone: ZoneInfo, function: Callable[..., Any]) -> Job[..., Any]:
    """Give a function its times. It runs in a process of its own: what is over its time is killed, not asked."""
    scheduled: Job[..., Any] = hf.schedule(
        WallClock(planned.at, zone),
        name=planned.name,
        queue=QUEUE,
        max_instances=1,
        coalesce=planned.coalesce,
        misfire_grace=planned.misfire_grace,
        expected_runtime=planned.expected,
        isolation="process",
        audit=True,
    )(function)
    return scheduled
