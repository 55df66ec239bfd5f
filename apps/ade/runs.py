"""Runs and builds: submitted in one transaction; how they stand is read from the engine, which alone knows."""

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
from holdfast import Build as Making
from holdfast import RunFilter, Snapshot

RunStatus = Literal["queued", "running", "succeeded", "failed", "cancelled"]
BuildStatus = Literal["queued", "building", "ready", "failed", "cancelled"]

OF_RUN: dict[str, RunStatus] = {
    "queued": "queued",
    "running": "running",
    "succeeded": "succeeded",
    "failed": "failed",
    "timed_out": "failed",
    "cancelled": "cancelled",
}
OF_MAKING: dict[str, BuildStatus] = {
    "queued": "queued",
    "running": "building",
    "succeeded": "ready",
    "failed": "failed",
    "timed_out": "failed",
    "cancelled": "cancelled",
}
"""A build's state by the state of the run that makes it."""
BUILD_FAILED, GIVEN_UP = "build failed: ", "GiveUp: "
FILTERS = {"failed": ("failed", "timed_out")}


class NotHere(Exception):
    """What a run would be made of is not there."""

    def __init__(self, what: str, message: str) -> None:
        super().__init__(message)
        self.what = what


@dataclass(frozen=True, kw_only=True)
class BuildView:
    """A build as it stands; `making` is the engine's run that makes it, None while it was only asked for."""

    row: Build
    status: BuildStatus
    message: str | None
    making: str | None
    started_at: datetime | None
    finished_at: datetime | None
    waiting: int


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A run as it stands, with its build."""

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
    def waits(self) -> str | None:
        """What a queued run waits for, in words; what its build is decides."""
        if self.status != "queued":
            return None
        match self.build.status:
            case "queued" | "building":
                return f"It waits for its build, which is {self.build.status}."
            case "ready":
                return "Its build is ready; it waits for a free place."
            case bad if self.build.making in self.snapshot.needed:
                return f"Its build {'was cancelled' if bad == 'cancelled' else 'failed'}: the run is about to fail."
            case bad:
                return f"Its build {'was cancelled' if bad == 'cancelled' else 'failed'} before: it is made once more."


def submit(session: Session, configuration_id: str, document_id: str) -> str:
    """Queue a run of a configuration as it is now, with its build got or created: all in the caller's transaction.

    QueueFull, or NotHere: then nothing is written, neither run nor build.
    """
    configuration = session.get(Configuration, configuration_id)
    if configuration is None:
        raise NotHere("configuration", f"there is no configuration {configuration_id}")
    document = documents.in_workspace(session, configuration.workspace_id, document_id)
    if document is None:
        raise NotHere("document", f"the configuration's workspace has no document {document_id}")
    version = session.get_one(Version, (configuration.id, configuration.version))
    known_by = fingerprint(version)
    build = get_or_create_build(session, version, known_by)
    run_id = jobs.submit(
        session,
        document_id=document.id,
        configuration_id=configuration.id,
        version=version.number,
        fingerprint=known_by,
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
    """What an environment for this version is known by, with the engine that we have, on hosts like this one."""
    return configurations.fingerprint(version, engine=install.engine_version(), platform=install.platform())


def get_or_create_build(session: Session, version: Version, fingerprint: str) -> Build:
    """The one build of a fingerprint: whoever inserts it first makes it, everyone else fetches it."""
    wanted = select(Build).where(Build.configuration_id == version.configuration_id, Build.fingerprint == fingerprint)
    if (found := session.scalar(wanted)) is not None:
        return found
    made = Build(
        id=new_id(datetime.now(UTC)),
        configuration_id=version.configuration_id,
        version=version.number,
        fingerprint=fingerprint,
        created_at=datetime.now(UTC),
    )
    try:
        with session.begin_nested():
            session.add(made)
    except IntegrityError:
        return session.scalars(wanted).one()
    return made


def view(session: Session, run_id: str) -> RunView | None:
    row = session.get(Run, run_id)
    return None if row is None else _views(session, [row], {run_id: hf.snapshot(run_id)})[0]


def listed(
    session: Session, *, status: RunStatus | None, configuration_id: str | None, limit: int, before: str | None
) -> list[RunView]:
    """The newest first; `before` continues after the last one of the page before."""
    tag = None if configuration_id is None else ("configuration", configuration_id)
    found: dict[str, Snapshot] = {}
    for state in FILTERS.get(status or "", (status,)):
        wanted = RunFilter(job=jobs.normalise.name, state=state, tag=tag)
        page = hf.search(wanted, limit=limit, order="submitted", before=before)
        found |= {run.id: run for run in page.items}
    ids = sorted(found, reverse=True)[:limit]
    rows = list(session.scalars(select(Run).where(Run.id.in_(ids)))) if ids else []
    return _views(session, sorted(rows, key=lambda row: row.id, reverse=True), found)


def view_build(session: Session, build_id: str) -> BuildView | None:
    row = session.get(Build, build_id)
    return None if row is None else build_view(row)


def builds(session: Session, configuration_id: str | None = None, *, limit: int) -> list[BuildView]:
    """The newest first."""
    wanted = select(Build).order_by(Build.id.desc()).limit(limit)
    if configuration_id is not None:
        wanted = wanted.where(Build.configuration_id == configuration_id)
    return [build_view(row) for row in session.scalars(wanted)]


def build_view(row: Build) -> BuildView:
    """A build with its state, which its newest making has."""
    found = jobs.making(row.configuration_id, row.version, row.fingerprint)
    if found is None:
        return BuildView(
            row=row, status="queued", message=None, making=None, started_at=None, finished_at=None, waiting=0
        )
    status, message = _state_of(found)
    return BuildView(
        row=row,
        status=status,
        message=message,
        making=found.run_id,
        started_at=found.started_at,
        finished_at=found.finished_at,
        waiting=found.waiting,
    )


def _state_of(found: Making) -> tuple[BuildStatus, str | None]:
    """A build's state, and why. One that is out of date is what it was until the next run has it made anew."""
    if found.state != "stale":
        return OF_MAKING[{"building": "running", "ready": "succeeded"}.get(found.state, found.state)], found.error
    because = found.because or "no reason given"
    if because.startswith(jobs.LOST):
        why = because.removeprefix(jobs.LOST)
        return "failed", f"its environment was lost: {why}; the next run has it built again"
    return OF_MAKING[hf.snapshot(found.run_id).state], f"it is out of date: {because}; the next run has it built again"


def _views(session: Session, rows: list[Run], snapshots: dict[str, Snapshot]) -> list[RunView]:
    made = {build_id: build_view(session.get_one(Build, build_id)) for build_id in {row.build_id for row in rows}}
    return [
        RunView(
            row=row,
            build=made[row.build_id],
            document=session.get_one(Document, row.input_document_id),
            configuration=session.get_one(Configuration, row.configuration_id),
            status=OF_RUN[snapshots[row.id].state],
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
            f"the run took longer than {run.policy.timeout.total_seconds():g} s (ADE_RUN_TIMEOUT_SECONDS): "
            "its engine was stopped, with all that it had started"
        )
    return run.error


def reason(error: str | None) -> str | None:
    """Why something failed, in its own words: without the names of our errors, and without a trace."""
    if error is None:
        return None
    prefix = BUILD_FAILED if error.startswith(BUILD_FAILED) else ""
    _, given_up, words = error.rpartition(GIVEN_UP)
    if given_up:
        return prefix + words.strip()
    return error.strip().splitlines()[-1] if error.startswith("Traceback") else error.strip()
