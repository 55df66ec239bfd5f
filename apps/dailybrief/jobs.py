"""Jobs: all that the newsroom asks of Holdfast: four jobs, each on a schedule.

A job checks that it has a slot, calls the domain, and returns what was done as counts, with `rows`
for their sum; meanwhile it tells how many rows it has written, so that this is known of one that fails. Both services
import this; only the worker schedules.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from apps.dailybrief import job_runs, schedules, services, tables
from apps.dailybrief.settings import Settings
from apps.shared.database import Database
from holdfast import Context, GiveUp, Holdfast

settings = Settings.load()
# Workers keep no schedules unless told to: only k2dailybrief-worker is, in `worker_loop`.
hf = Holdfast(schedules=False)
database = Database(hf.settings.url, tables.Table.metadata, prepare=hf.start)


def prepare() -> None:
    """Make the tables of the engine and of the newsroom, the triggers, and the view `job_runs`."""
    with database.write() as session:
        tables.protect(session.connection())
        job_runs.create(session.connection())


def rss_ingestion(ctx: Context, scheduled_for: datetime) -> dict[str, Any]:
    """Read every feed once; an article that is there already is passed over."""
    from apps.dailybrief.feeds import ingest

    _require_slot(ctx)
    return ingest(database, settings, check=ctx.check, written=ctx.progress)


def event_clustering(ctx: Context, scheduled_for: datetime) -> dict[str, Any]:
    """Put every article that has no event yet to one."""
    from apps.dailybrief.events import cluster

    _require_slot(ctx)
    return cluster(database, settings, written=ctx.progress)


def retention_cleanup(ctx: Context, scheduled_for: datetime) -> dict[str, Any]:
    """Delete what is old and no edition refers to. A slot that is still to come makes nothing older than it is."""
    from apps.dailybrief.retention import clean

    _require_slot(ctx)
    return clean(database, settings, now=min(scheduled_for, hf.clock.now()), written=ctx.progress)


def publish_brief(ctx: Context, scheduled_for: datetime) -> dict[str, Any]:
    """Publish the brief of the slot's day, unless it has been."""
    from apps.dailybrief.editions import publish

    _require_slot(ctx)
    return publish(database, settings, day=scheduled_for.astimezone(settings.zone).date(), written=ctx.progress)


FUNCTIONS = (rss_ingestion, event_clustering, retention_cleanup, publish_brief)

PLAN = {planned.name: planned for planned in schedules.plan(settings)}

for _planned, _function in zip(PLAN.values(), FUNCTIONS, strict=True):
    schedules.put(hf, _planned, settings.zone, _function)


def _require_slot(ctx: Context) -> None:
    """There is one way to run a job: a slot, in time, by the one worker. Whoever comes by another does nothing."""
    with database.read() as session:
        run = job_runs.get(session, ctx.run.id)
    if run is None:
        raise GiveUp("this run has no slot: trigger the job with a scheduled_for", failure_type="NO_SLOT")
    grace = PLAN[run.job_name].misfire_grace_time
    if (waited := hf.clock.now() - run.started_at) > grace:
        why = f"it would begin {waited.total_seconds():.0f} s after its claim; its misfire_grace_time is {grace}"
        raise GiveUp(why, failure_type="MISFIRED")
    if f":{services.WORKER}:" not in (run.worker_instance or ""):
        why = f"{run.worker_instance} is not {services.WORKER}: start `python -m apps.dailybrief.worker`"
        raise GiveUp(why, failure_type="WRONG_WORKER")
