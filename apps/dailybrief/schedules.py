"""Schedules: when each job is due, and what happens to late or overlapping slots.

    rss_ingestion      reads the feeds
    event_clustering   groups new articles into events
    retention_cleanup  deletes old articles
    publish_brief      publishes the brief of the day; the last job of a day

APScheduler's cron trigger computes the times. The engine does the rest: it claims each (job, time) once, and applies
max_instances, coalesce and misfire_grace_time to late and overlapping slots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from apps.dailybrief.cron_trigger import WallClockTrigger
from apps.dailybrief.settings import Settings
from holdfast import Holdfast, Job

QUEUE = "dailybrief"
PREFIXES = {
    "rss_ingestion": "ingestion",
    "event_clustering": "clustering",
    "retention_cleanup": "retention",
    "publish_brief": "publishing",
}
"""The prefix of each job's settings."""


@dataclass(frozen=True, kw_only=True)
class JobSchedule:
    """The schedule of one job. `at` is a cron expression; the job is stopped after twice the time in `expected`."""

    name: str
    at: str
    expected: timedelta
    max_instances: int
    coalesce: bool
    misfire_grace_time: timedelta


OPTIONS = tuple(field.name for field in fields(JobSchedule) if field.name != "name")


def job_schedules(settings: Settings) -> tuple[JobSchedule, ...]:
    """The schedules of all four jobs."""
    return tuple(_job_schedule(settings, name, prefix) for name, prefix in PREFIXES.items())


def _job_schedule(settings: Settings, name: str, prefix: str) -> JobSchedule:
    return JobSchedule(name=name, **{option: getattr(settings, f"{prefix}_{option}") for option in OPTIONS})


def add(hf: Holdfast, schedule: JobSchedule, zone: ZoneInfo, function: Callable[..., Any]) -> Job[..., Any]:
    """Register a function as a scheduled job. Each run has its own process, which is killed after its timeout."""
    job = hf.job(
        name=schedule.name,
        queue=QUEUE,
        isolation="process",
        only_from_code=True,  # a run without a slot would fail
        start_at="/job-runs",
    )(function)
    scheduled: Job[..., Any] = hf.schedule(
        WallClockTrigger(schedule.at, zone),
        max_instances=schedule.max_instances,
        coalesce=schedule.coalesce,
        misfire_grace=schedule.misfire_grace_time,
        expected_runtime=schedule.expected,
        keep_forever=True,
    )(job)
    return scheduled
