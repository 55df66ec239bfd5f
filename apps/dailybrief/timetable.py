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
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from apps.dailybrief.settings import Settings
from apps.dailybrief.wallclock import WallClock
from holdfast import Holdfast, Job

QUEUE = "dailybrief"


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
    job = hf.job(
        name=planned.name,
        queue=QUEUE,
        isolation="process",
        only_from_code=True,  # a run without a slot would do nothing
        start_at="/job-runs",
    )(function)
    scheduled: Job[..., Any] = hf.schedule(
        WallClock(planned.at, zone),
        max_instances=1,
        coalesce=planned.coalesce,
        misfire_grace=planned.misfire_grace,
        expected_runtime=planned.expected,
        audit=True,
    )(job)
    return scheduled
