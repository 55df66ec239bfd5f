"""Jobs: the four scheduled jobs of the daily brief.

Each job checks that its run has a slot, does its work, and returns counts, with the number of written rows as `rows`.
It reports progress while it works, so that the number of rows that a failed job wrote is known, too. Both services
import this module, but only the worker schedules.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from apps.dailybrief import job_runs, schedules, services, tables
from apps.dailybrief.settings import Settings
from apps.shared.database import Database
from holdfast import Context, GiveUp, Holdfast

settings = Settings.load()
# No worker schedules unless it is started with schedules=True, as only `worker_loop` does.
hf = Holdfast(schedules=False)
database = Database(hf.settings.url, tables.Table.metadata, prepare=hf.start)


def prepare() -> None:
    """Create the tables of the engine and of this application, the triggers, and the view `job_runs`."""
    with database.write() as session:
        tables.protect(session.connection())
        job_runs.create(session.connection())


def rss_ingestion(ctx: Context, scheduled_for: datetime) -> dict[str, Any]:
    """Read every feed once and store the new articles."""
    from apps.dailybrief.feeds import ingest

    _require_slot(ctx)
    return ingest(database, settings, check=ctx.check, on_progress=ctx.progress)


def event_clustering(ctx: Context, scheduled_for: datetime) -> dict[str, Any]:
    """Assign every new article to an event."""
    from apps.dailybrief.events import cluster

    _require_slot(ctx)
    return cluster(database, settings, on_progress=ctx.progress)


def retention_cleanup(ctx: Context, scheduled_for: datetime) -> dict[str, Any]:
    """Delete old articles and events that are in no edition. If the slot is in the future, age counts from now."""
    from apps.dailybrief.retention import clean

    _require_slot(ctx)
    return clean(database, settings, now=min(scheduled_for, hf.clock.now()), on_progress=ctx.progress)


def publish_brief(ctx: Context, scheduled_for: datetime) -> dict[str, Any]:
    """Publish the brief of the slot's day, unless it is published already."""
    from apps.dailybrief.editions import publish

    _require_slot(ctx)
    return publish(database, settings, day=scheduled_for.astimezone(settings.zone).date(), on_progress=ctx.progress)


FUNCTIONS = (rss_ingestion, event_clustering, retention_cleanup, publish_brief)

SCHEDULES = {schedule.name: schedule for schedule in schedules.job_schedules(settings)}

for _schedule, _function in zip(SCHEDULES.values(), FUNCTIONS, strict=True):
    schedules.add(hf, _schedule, settings.zone, _function)


def _require_slot(ctx: Context) -> None:
    """Fail the run unless it has a slot, starts in time, and is executed by the only allowed worker."""
    with database.read() as session:
        run = job_runs.get(session, ctx.run.id)
    if run is None:
        raise GiveUp("this run has no slot; trigger the job with a scheduled_for", failure_type="NO_SLOT")
    grace = SCHEDULES[run.job_name].misfire_grace_time
    if (waited := hf.clock.now() - run.started_at) > grace:
        error = f"started {waited.total_seconds():.0f} s after its claim, but misfire_grace_time is {grace}"
        raise GiveUp(error, failure_type="MISFIRED")
    if f":{services.WORKER}:" not in (run.worker_instance or ""):
        error = f"{run.worker_instance} is not {services.WORKER}; start `python -m apps.dailybrief.worker`"
        raise GiveUp(error, failure_type="WRONG_WORKER")
