"""Job runs: the audit log. It is an SQL view `job_runs` with one row for each claimed slot.

The view reads the engine's view of slots, so nothing is stored twice. The primary key of a slot is (job_name,
scheduled_for): the process that inserts that row has claimed the slot. Conditions on `started_at` and on
`status = 'running'` use indexes of the engine, so they don't read the whole log.

    claim ──▶ running ──▶ success           the function returned
                      ──▶ failed            it raised, was cancelled, or its worker died: worker_startup_recovery
                      ──▶ skipped_timeout   it ran for more than twice the expected time
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
MAX_DURATION = timedelta(days=2)  # no job runs for longer
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
from holdfast_slot_view
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
    """A claimed slot and its outcome."""

    id: str
    job_name: str
    scheduled_for: datetime
    started_at: datetime
    finished_at: datetime | None
    status: Status
    worker_instance: str | None
    error_message: str | None


def create(connection: Connection) -> None:
    """Create or replace the view. The tables of the engine must exist."""
    definition = text("select lower(sql) from sqlite_master where name = 'job_runs'")
    if connection.dialect.name == "postgresql":
        connection.execute(text(VIEW.replace("create view", "create or replace view")))
    elif connection.scalar(definition) != VIEW.strip().lower():
        connection.execute(text("drop view if exists job_runs"))
        connection.execute(text(VIEW.strip()))


def latest(session: Session, *, limit: int, job_name: str | None = None, status: str | None = None) -> Sequence[JobRun]:
    """The latest job runs, the newest claim first."""
    query = select(job_runs).order_by(job_runs.c.started_at.desc(), job_runs.c.id.desc()).limit(limit)
    if job_name is not None:
        query = query.where(job_runs.c.job_name == job_name)
    if status is not None:
        query = query.where(job_runs.c.status == status)
    # Try a recent window first: without a bound, the database would sort all claims.
    for window in WINDOWS:
        found = session.execute(query.where(job_runs.c.started_at >= datetime.now(UTC) - window)).mappings().all()
        if len(found) == limit:
            return [JobRun(**row) for row in found]
    return [JobRun(**row) for row in session.execute(query).mappings()]


def since(session: Session, instant: datetime) -> Sequence[JobRun]:
    """The runs that have not ended, or ended at this instant or later, in the order of their claims."""
    not_ended_before = (job_runs.c.finished_at.is_(None)) | (job_runs.c.finished_at >= instant)
    recent = job_runs.c.started_at >= instant - MAX_DURATION
    query = select(job_runs).where(recent, not_ended_before).order_by(job_runs.c.started_at, job_runs.c.id)
    return [JobRun(**row) for row in session.execute(query).mappings()]


def get(session: Session, run_id: str) -> JobRun | None:
    """The job run with this id; None if the run has no slot."""
    found = session.execute(select(job_runs).where(job_runs.c.id == run_id)).mappings().first()
    return None if found is None else JobRun(**found)
