"""Job runs: the audit log, one row for each slot that was claimed, under the name `job_runs` for any SQL client.

It is a view of the engine's view of slots, so there is one truth. The primary key of a slot is the unique (job_name,
scheduled_for): whoever inserts that row has the slot. `started_at` has an index of the engine's; `running` rows come
from where runs stand that have not ended, so neither condition reads the whole log.

    claim ──▶ running ──▶ success           its function returned
                      ──▶ failed            it raised, was cancelled, or its worker died: worker_startup_recovery
                      ──▶ skipped_timeout   it ran for longer than twice what is expected
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from sqlalchemy import Column, Connection, MetaData, String, Table, Text, select, text
from sqlalchemy.orm import Session

from apps.shared.database import Instant

Status = Literal["running", "success", "failed", "skipped_timeout"]
STATUSES: tuple[Status, ...] = ("running", "success", "failed", "skipped_timeout")
RECOVERED = "worker_startup_recovery"
LONGEST = timedelta(days=2)  # nothing runs for longer
WINDOWS = (timedelta(days=2), timedelta(days=40))

VIEW = """
create view job_runs as
select
    run_id as id,
    job_name,
    scheduled_for,
    claimed_at as started_at,
    finished_at,
    cast(case outcome
        when 'queued' then 'running'
        when 'running' then 'running'
        when 'ran' then 'success'
        when 'skipped_timeout' then 'skipped_timeout'
        else 'failed'
    end as varchar(16)) as status,
    cast(coalesce(worker, claimed_by) as varchar(128)) as worker_instance,
    error as error_message
from holdfast_schedule_slots
where outcome in ('queued', 'running', 'ran', 'failed', 'cancelled', 'skipped_timeout')
"""

job_runs = Table(
    "job_runs",
    MetaData(),
    Column("id", String(128), primary_key=True),
    Column("job_name", String(128)),
    Column("scheduled_for", Instant),
    Column("started_at", Instant),
    Column("finished_at", Instant),
    Column("status", String(16)),
    Column("worker_instance", String(128)),
    Column("error_message", Text),
)


@dataclass(frozen=True, kw_only=True)
class JobRun:
    """A slot that was claimed, and what became of it."""

    id: str
    job_name: str
    scheduled_for: datetime
    started_at: datetime
    finished_at: datetime | None
    status: Status
    worker_instance: str | None
    error_message: str | None


def create(connection: Connection) -> None:
    """Make the view, or make it anew; the engine's tables must be there."""
    made_by = text("select lower(sql) from sqlite_master where name = 'job_runs'")
    if connection.dialect.name == "postgresql":
        connection.execute(text(VIEW.replace("create view", "create or replace view")))
    elif connection.scalar(made_by) != VIEW.strip().lower():
        connection.execute(text("drop view if exists job_runs"))
        connection.execute(text(VIEW.strip()))


def latest(session: Session, *, limit: int, job_name: str | None = None, status: str | None = None) -> Sequence[JobRun]:
    """The newest claims first."""
    wanted = select(job_runs).order_by(job_runs.c.started_at.desc(), job_runs.c.id.desc()).limit(limit)
    if job_name is not None:
        wanted = wanted.where(job_runs.c.job_name == job_name)
    if status is not None:
        wanted = wanted.where(job_runs.c.status == status)
    # Without a bound all claims would be sorted. Mostly the last days have enough.
    for window in WINDOWS:
        found = session.execute(wanted.where(job_runs.c.started_at >= datetime.now(UTC) - window)).mappings().all()
        if len(found) == limit:
            return [JobRun(**row) for row in found]
    return [JobRun(**row) for row in session.execute(wanted).mappings()]


def since(session: Session, instant: datetime) -> Sequence[JobRun]:
    """What is running, and what has ended at this instant or later; in the order of claims, of the last days."""
    new = (job_runs.c.finished_at.is_(None)) | (job_runs.c.finished_at >= instant)
    lately = job_runs.c.started_at >= instant - LONGEST
    wanted = select(job_runs).where(lately, new).order_by(job_runs.c.started_at, job_runs.c.id)
    return [JobRun(**row) for row in session.execute(wanted).mappings()]


def get(session: Session, run_id: str) -> JobRun | None:
    """The slot that a run came by; None if it came by a way round it."""
    found = session.execute(select(job_runs).where(job_runs.c.id == run_id)).mappings().first()
    return None if found is None else JobRun(**found)
