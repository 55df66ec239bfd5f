"""Runs and builds: a run and its build are submitted in one transaction, and their states are read from Holdfast."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from apps.ade import configurations, documents, install, jobs
from apps.ade.jobs import hf
from apps.ade.tables import Build, Configuration, Document, Run, Version
from apps.shared.ids import new_id
from holdfast import Build as BuildRecord
from holdfast import RunFilter, Snapshot

RunStatus = Literal["queued", "running", "succeeded", "failed", "cancelled"]
BuildStatus = Literal["queued", "building", "ready", "failed", "cancelled"]

RUN_STATUS: dict[str, RunStatus] = {
    "queued": "queued",
    "running": "running",
    "succeeded": "succeeded",
    "failed": "failed",
    "timed_out": "failed",
    "cancelled": "cancelled",
}
BUILD_STATUS: dict[str, BuildStatus] = {
    "queued": "queued",
    "running": "building",
    "succeeded": "ready",
    "failed": "failed",
    "timed_out": "failed",
    "cancelled": "cancelled",
}
"""A build's status by the state of the run that executes it."""
BUILD_FAILED, GIVE_UP = "build failed: ", "GiveUp: "
STATES_OF_STATUS = {"failed": ("failed", "timed_out")}


class NotFound(Exception):
    """The configuration or the document of a submission does not exist."""

    def __init__(self, noun: str, message: str) -> None:
        super().__init__(message)
        self.noun = noun


@dataclass(frozen=True, kw_only=True)
class BuildView:
    """A build with its status; `run_id` is the Holdfast run that executes it, None while it is only requested."""

    row: Build
    status: BuildStatus
    message: str | None
    run_id: str | None
    started_at: datetime | None
    finished_at: datetime | None
    waiting: int


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A run with its status and its build."""

    row: Run
    build: BuildView
    document: Document
    configuration: Configuration
    status: RunStatus
    message: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    snapshot: Snapshot

    @property
    def ended(self) -> bool:
        return self.snapshot.ended

    @property
    def waiting_for(self) -> str | None:
        """A sentence that says what a queued run waits for, derived from its build; None if the run is not queued."""
        if self.status != "queued":
            return None
        match self.build.status:
            case "queued" | "building":
                return f"This run waits for its build, which is {self.build.status}."
            case "ready":
                return "The build is ready; this run waits for a free worker."
            case ended if self.build.run_id in self.snapshot.depends_on:
                return f"The build {'was cancelled' if ended == 'cancelled' else 'failed'}; this run is about to fail."
            case ended:
                return (
                    f"The last build {'was cancelled' if ended == 'cancelled' else 'failed'}; it will be built again."
                )


def submit(session: Session, configuration_id: str, document_id: str) -> str:
    """Queue a run of a configuration's current version, and find or create its build, in the caller's transaction.

    If it raises QueueFull or NotFound, neither the run nor the build is written.
    """
    configuration = session.get(Configuration, configuration_id)
    if configuration is None:
        raise NotFound("configuration", f"there is no configuration {configuration_id}")
    document = documents.in_workspace(session, configuration.workspace_id, document_id)
    if document is None:
        raise NotFound("document", f"the configuration's workspace has no document {document_id}")
    version = session.get_one(Version, (configuration.id, configuration.version))
    digest = fingerprint(version)
    build = get_or_create_build(session, version, digest)
    run_id = jobs.submit(
        session,
        document_id=document.id,
        configuration_id=configuration.id,
        version=version.number,
        fingerprint=digest,
        tags={"configuration": configuration.id, "build": build.id},
    )
    session.add(
        Run(
            id=run_id,
            workspace_id=configuration.workspace_id,
            configuration_id=configuration.id,
            version=version.number,
            input_document_id=document.id,
            build_id=build.id,
            created_at=datetime.now(UTC),
        )
    )
    session.flush()
    return run_id


def fingerprint(version: Version) -> str:
    """Return the fingerprint of this version with this process's engine and platform."""
    return configurations.fingerprint(version, engine=install.engine_version(), platform=install.platform())


def get_or_create_build(session: Session, version: Version, fingerprint: str) -> Build:
    """Return the build of a fingerprint. The unique key lets one transaction insert it; the others read its row."""
    query = select(Build).where(Build.configuration_id == version.configuration_id, Build.fingerprint == fingerprint)
    if (existing := session.scalar(query)) is not None:
        return existing
    build = Build(
        id=new_id(datetime.now(UTC)),
        configuration_id=version.configuration_id,
        version=version.number,
        fingerprint=fingerprint,
        created_at=datetime.now(UTC),
    )
    try:
        with session.begin_nested():
            session.add(build)
    except IntegrityError:
        return session.scalars(query).one()
    return build


def view(session: Session, run_id: str) -> RunView | None:
    row = session.get(Run, run_id)
    return None if row is None else _views(session, [row], {run_id: hf.snapshot(run_id)})[0]


def listed(
    session: Session, *, status: RunStatus | None, configuration_id: str | None, limit: int, before: str | None
) -> list[RunView]:
    """List runs, newest first; `before` is the last id of the previous page."""
    tag = None if configuration_id is None else ("configuration", configuration_id)
    snapshots: dict[str, Snapshot] = {}
    for state in STATES_OF_STATUS.get(status or "", (status,)):
        run_filter = RunFilter(job=jobs.normalise.name, state=state, tag=tag)
        page = hf.search(run_filter, limit=limit, order="submitted", before=before)
        snapshots |= {run.id: run for run in page.items}
    ids = sorted(snapshots, reverse=True)[:limit]
    rows = list(session.scalars(select(Run).where(Run.id.in_(ids)))) if ids else []
    return _views(session, sorted(rows, key=lambda row: row.id, reverse=True), snapshots)


def view_build(session: Session, build_id: str) -> BuildView | None:
    row = session.get(Build, build_id)
    return None if row is None else build_view(row)


def builds(session: Session, configuration_id: str | None = None, *, limit: int) -> list[BuildView]:
    """List builds, newest first."""
    query = select(Build).order_by(Build.id.desc()).limit(limit)
    if configuration_id is not None:
        query = query.where(Build.configuration_id == configuration_id)
    return [build_view(row) for row in session.scalars(query)]


def build_view(row: Build) -> BuildView:
    """Return a build with the status of its latest execution."""
    record = jobs.find_build(row.configuration_id, row.version, row.fingerprint)
    if record is None:
        return BuildView(
            row=row, status="queued", message=None, run_id=None, started_at=None, finished_at=None, waiting=0
        )
    status, message = _status_of(record)
    return BuildView(
        row=row,
        status=status,
        message=message,
        run_id=record.run_id,
        started_at=record.started_at,
        finished_at=record.finished_at,
        waiting=record.waiting,
    )


def _status_of(record: BuildRecord) -> tuple[BuildStatus, str | None]:
    """Return a build's status and the reason for it. A stale build keeps its status until the next run rebuilds it."""
    if record.state != "stale":
        state = {"building": "running", "ready": "succeeded"}.get(record.state, record.state)
        return BUILD_STATUS[state], record.error
    reason = record.reason or "no reason given"
    if reason.startswith(jobs.LOST):
        details = reason.removeprefix(jobs.LOST)
        return "failed", f"the environment was lost: {details}; the next run builds it again"
    status = BUILD_STATUS[hf.snapshot(record.run_id).state]
    return status, f"the build is out of date: {reason}; the next run builds it again"


def _views(session: Session, rows: list[Run], snapshots: dict[str, Snapshot]) -> list[RunView]:
    builds = {build_id: build_view(session.get_one(Build, build_id)) for build_id in {row.build_id for row in rows}}
    return [
        RunView(
            row=row,
            build=builds[row.build_id],
            document=session.get_one(Document, row.input_document_id),
            configuration=session.get_one(Configuration, row.configuration_id),
            status=RUN_STATUS[snapshots[row.id].state],
            message=_message(snapshots[row.id]),
            created_at=snapshots[row.id].created_at,
            started_at=snapshots[row.id].started_at,
            finished_at=snapshots[row.id].finished_at,
            snapshot=snapshots[row.id],
        )
        for row in rows
    ]


def _message(run: Snapshot) -> str | None:
    if run.state == "timed_out" and run.policy.timeout is not None:
        return (
            f"the run took longer than {run.policy.timeout.total_seconds():g} s (ADE_RUN_TIMEOUT_SECONDS); "
            "the engine and its child processes were killed"
        )
    return run.error


def reason(error: str | None) -> str | None:
    """Return an error's message without exception names and without a traceback."""
    if error is None:
        return None
    prefix = BUILD_FAILED if error.startswith(BUILD_FAILED) else ""
    _, gave_up, message = error.rpartition(GIVE_UP)
    if gave_up:
        return prefix + message.strip()
    return error.strip().splitlines()[-1] if error.startswith("Traceback") else error.strip()
