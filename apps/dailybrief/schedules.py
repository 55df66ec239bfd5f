"""Schedules: when each job is due, and on which terms.

    rss_ingestion      reads the feeds
    event_clustering   groups what came
    retention_cleanup  deletes what is old
    publish_brief      publishes the brief of the day; the last one

APScheduler's cron trigger says the times. Everything else is the engine's: it claims each (job, time) once, and decides
by max_instances, coalesce and misfire_grace_time what becomes of a late or overlapping slot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from apps.dailybrief.cron_trigger import WallClock
from apps.dailybrief.settings import Settings
from holdfast import Holdfast, Job

QUEUE = "dailybrief"
PREFIXES = {
    "rss_ingestion": "ingestion",
    "event_clustering": "clustering",
    "retention_cleanup": "retention",
    "publish_brief": "publishing",
}
"""What the settings of each job begin with."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A job's times; `expected` is the longest that it should take, and after twice that it is stopped."""

    name: str
    at: str
    expected: timedelta
    max_instances: int
    coalesce: bool
    misfire_grace_time: timedelta


TERMS = tuple(field.name for field in fields(Planned) if field.name != "name")


def plan(settings: Settings) -> tuple[Planned, ...]:
    """All four, in the order of a day."""
    return tuple(_planned(settings, name, prefix) for name, prefix in PREFIXES.items())


def _planned(settings: Settings, name: str, prefix: str) -> Planned:
    return Planned(name=name, **{term: getattr(settings, f"{prefix}_{term}") for term in TERMS})


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
        max_instances=planned.max_instances,
        coalesce=planned.coalesce,
        misfire_grace=planned.misfire_grace_time,
        expected_runtime=planned.expected,
        audit=True,
    )(job)
    return scheduled
