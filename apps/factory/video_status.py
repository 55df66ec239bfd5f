"""Video status: stages, segments, leases and result of a video, for pages and programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, column, func, select, table
from sqlalchemy.orm import Session

from apps.factory import publishing, videos
from apps.factory.jobs import folder_of, hf
from apps.factory.tables import Edition, Video
from apps.factory.videos import VideoNotFound

STAGES = ("script", "audio", "visuals", "render", "commit")
SPLIT = ("audio", "visuals")
_facts = ("stage", "segment", "run_id", "state", "lease_owner", "lease_expires_at", "attempt", "takeovers", "retry_at")
_more = ("started_at", "reason", "diagnostic", "error", "result")
SEGMENTS = table("segments", *(column(name) for name in ("job_id", *_facts, *_more)))
_columns = [f"{stage}_{what}" for stage in STAGES for what in ("state", "lease_owner", "lease_expires_at")]
JOBS = table(
    "jobs",
    *(column(name) for name in ("job_id", "video_id", "edition", "job_state", *_columns)),
    *(column(name) for name in ("diagnostic", "created_at", "finished_at")),
)


@dataclass(frozen=True, kw_only=True)
class StageStatus:
    """One stage of a video: where it stands, and how much of it is done."""

    name: str
    state: str
    done: int
    total: int
    running: int
    retrying: int
    made: int
    """Of what is done: how much had to be made, and was not there already."""
    reason: str | None
    """Why it was skipped, if it was: it never ran."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """Who works on what, and until when no one else may."""

    owner: str
    stage: str
    segment: str
    run_id: str
    since: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One segment: its scene, where its two stages stand, and the files that there are of it."""

    number: int
    title: str
    audio: str
    visuals: str
    attempts: int
    takeovers: int
    made: bool | None
    trouble: str | None
    reason: str | None
    """Why a part of it was skipped."""
    parts: dict[str, dict[str, Any]]

    @property
    def state(self) -> str:
        return self.audio if self.audio != "DONE" else self.visuals


@dataclass(frozen=True, kw_only=True)
class VideoStatus:
    """An edition of a video, all of it."""

    video_id: str
    edition: int
    newest: int
    title: str
    script: str
    run_id: str
    state: str
    error: str | None
    diagnostic: str | None
    """What the newest recovery was of a stage or segment that is not done yet."""
    submitted_at: datetime
    stations: Sequence[StageStatus]
    cells: Sequence[Cell]
    leases: Sequence[Lease]
    manifest: dict[str, Any] | None
    synthesisers: Sequence[str]

    @property
    def ended(self) -> bool:
        return self.state not in ("queued", "running")


def status_of(session: Session, video_id: str, edition: int | None = None) -> VideoStatus:
    """How an edition stands, the newest if none is named; or VideoNotFound."""
    newest = videos.newest(session, video_id)
    if edition is not None and not 1 <= edition <= newest.number:
        raise VideoNotFound(f"{video_id} has no edition {edition}; the newest is {newest.number}")
    found = newest if edition is None else session.get_one(Edition, (video_id, edition))
    run = hf.snapshot(found.run_id)
    rows = session.execute(select(SEGMENTS).where(SEGMENTS.c.job_id == found.run_id)).all()
    results = {(row.stage, row.segment): json.loads(row.result) for row in rows if row.result}
    scenes = results.get(("script", "")) or []
    return VideoStatus(
        video_id=video_id,
        edition=found.number,
        newest=newest.number,
        title=scenes[0]["title"] if scenes else video_id,
        script=found.script,
        run_id=found.run_id,
        state=run.state,
        error=run.error,
        diagnostic=max((row.diagnostic for row in rows if row.diagnostic), default=None),
        submitted_at=found.submitted_at,
        stations=[_station(stage, rows, results) for stage in STAGES],
        cells=[_cell(number, scene, rows, results) for number, scene in enumerate(scenes)],
        leases=_leases(rows),
        manifest=publishing.read(folder_of(video_id, found.number)),
        synthesisers=sorted(
            {one["synthesiser"] for (stage, segment), one in results.items() if stage == "audio" and segment}
        ),
    )


def listed(session: Session, *, limit: int) -> list[dict[str, Any]]:
    """The newest videos, each with its newest edition as the view `jobs` has it."""
    newest = select(Edition.video_id, func.max(Edition.number).label("number")).group_by(Edition.video_id).subquery()
    asked = (
        select(Video.title, Video.made_at, JOBS)
        .where(Video.deleting_at.is_(None))
        .join(newest, newest.c.video_id == Video.id)
        .join(JOBS, (JOBS.c.video_id == Video.id) & (JOBS.c.edition == newest.c.number))
        .order_by(Video.made_at.desc(), Video.id)
        .limit(limit)
    )
    return [_told(row) for row in session.execute(asked)]


def jobs(session: Session, *, limit: int) -> list[dict[str, Any]]:
    """The newest rows of the view `jobs`."""
    return [_told(row) for row in session.execute(select(JOBS).order_by(JOBS.c.job_id.desc()).limit(limit))]


def instant(value: Any) -> datetime | None:
    """A time as the database has it: SQLite keeps texts, in UTC."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _told(row: Row[Any]) -> dict[str, Any]:
    found = dict(row._mapping)
    return {name: instant(value) if name.endswith("_at") else value for name, value in found.items()}


def _station(stage: str, rows: Sequence[Row[Any]], results: dict[tuple[str, str], Any]) -> StageStatus:
    own = [row for row in rows if row.stage == stage]
    parts = [row for row in own if row.segment] if stage in SPLIT else own
    whole = next((row.state for row in own if not row.segment), "DONE")
    states = [row.state for row in parts]
    under_way = next((state for state in ("RUNNING", "READY", "ERROR") if state in states), whole)
    state = whole if whole in ("DONE", "ERROR") else under_way
    done = [results.get((stage, row.segment)) for row in parts if row.state == "DONE"]
    return StageStatus(
        name=stage,
        state=state,
        done=len(done),
        total=len(parts),
        running=states.count("RUNNING"),
        retrying=sum(1 for row in parts if row.state == "ERROR" and row.retry_at),
        made=sum(1 for result in done if isinstance(result, dict) and result.get("made")),
        reason=next((row.reason for row in own if not row.segment), None) if state == "NEW" else None,
    )


def _cell(number: int, scene: dict[str, Any], rows: Sequence[Row[Any]], results: dict[tuple[str, str], Any]) -> Cell:
    own = {row.stage: row for row in rows if row.segment == str(number)}
    seen = [results[stage, str(number)] for stage in SPLIT if (stage, str(number)) in results]
    return Cell(
        number=number,
        title=scene["title"],
        audio=own["audio"].state if "audio" in own else "NEW",
        visuals=own["visuals"].state if "visuals" in own else "NEW",
        attempts=sum(row.attempt for row in own.values()),
        takeovers=sum(row.takeovers for row in own.values()),
        made=any(one["made"] for one in seen) if len(seen) == len(SPLIT) else None,
        trouble=next((row.error for row in own.values() if row.state == "ERROR" and row.error), None),
        reason=next((row.reason for row in own.values() if row.state == "NEW" and row.reason), None),
        parts={name: part for one in seen for name, part in one["parts"].items()},
    )


def _leases(rows: Sequence[Row[Any]]) -> list[Lease]:
    return [
        Lease(
            owner=row.lease_owner,
            stage=row.stage,
            segment=row.segment,
            run_id=row.run_id,
            since=instant(row.started_at),
            expires_at=instant(row.lease_expires_at),
        )
        for row in sorted(rows, key=lambda row: (STAGES.index(row.stage), len(row.segment), row.segment))
        if row.state == "RUNNING"
    ]
