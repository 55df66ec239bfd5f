"""Video status: the stages, segments, leases and files of a video, for pages and programs."""

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
SEGMENTS = table(
    "segments",
    *(column(name) for name in ("job_id", "stage", "segment", "run_id", "state", "lease_owner", "lease_expires_at")),
    *(column(name) for name in ("attempt", "takeovers", "retry_at", "started_at", "reason", "diagnostic")),
    *(column(name) for name in ("error", "result")),
)
_stage_columns = [f"{stage}_{name}" for stage in STAGES for name in ("state", "lease_owner", "lease_expires_at")]
JOBS = table(
    "jobs",
    *(column(name) for name in ("job_id", "video_id", "edition", "job_state", *_stage_columns)),
    *(column(name) for name in ("diagnostic", "created_at", "finished_at")),
)


@dataclass(frozen=True, kw_only=True)
class StageStatus:
    """One stage of a video: its state, and how many of its segments are done."""

    name: str
    state: str
    done: int
    total: int
    running: int
    retrying: int
    made: int
    """How many of the done segments were newly made; the others were reused."""
    reason: str | None
    """Why the stage was skipped, if it never ran."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The lease of a worker on a stage or a segment, and when it expires."""

    owner: str
    stage: str
    segment: str
    run_id: str
    since: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class SegmentStatus:
    """One segment: its scene, the states of its two stages, and its files."""

    number: int
    title: str
    audio: str
    visuals: str
    attempts: int
    takeovers: int
    made: bool | None
    """False if all its files were reused; None while the segment is not done."""
    error: str | None
    reason: str | None
    """Why one of its stages was skipped."""
    parts: dict[str, dict[str, Any]]

    @property
    def state(self) -> str:
        return self.audio if self.audio != "DONE" else self.visuals


@dataclass(frozen=True, kw_only=True)
class VideoStatus:
    """The status of one edition of a video."""

    video_id: str
    edition: int
    newest: int
    title: str
    script: str
    run_id: str
    state: str
    error: str | None
    diagnostic: str | None
    """Describes the newest recovery of a stage or segment that is not done yet."""
    submitted_at: datetime
    stages: Sequence[StageStatus]
    segments: Sequence[SegmentStatus]
    leases: Sequence[Lease]
    manifest: dict[str, Any] | None
    synthesisers: Sequence[str]

    @property
    def ended(self) -> bool:
        return self.state not in ("queued", "running")


def status_of(session: Session, video_id: str, edition: int | None = None) -> VideoStatus:
    """Return the status of an edition, the newest by default; raise VideoNotFound if there is none."""
    newest = videos.newest(session, video_id)
    if edition is not None and not 1 <= edition <= newest.number:
        raise VideoNotFound(f"{video_id} has no edition {edition}; the newest is {newest.number}")
    chosen = newest if edition is None else session.get_one(Edition, (video_id, edition))
    run = hf.snapshot(chosen.run_id)
    rows = session.execute(select(SEGMENTS).where(SEGMENTS.c.job_id == chosen.run_id)).all()
    results = {(row.stage, row.segment): json.loads(row.result) for row in rows if row.result}
    scenes = results.get(("script", "")) or []
    return VideoStatus(
        video_id=video_id,
        edition=chosen.number,
        newest=newest.number,
        title=scenes[0]["title"] if scenes else video_id,
        script=chosen.script,
        run_id=chosen.run_id,
        state=run.state,
        error=run.error,
        diagnostic=max((row.diagnostic for row in rows if row.diagnostic), default=None),
        submitted_at=chosen.submitted_at,
        stages=[_stage_status(stage, rows, results) for stage in STAGES],
        segments=[_segment_status(number, scene, rows, results) for number, scene in enumerate(scenes)],
        leases=_leases(rows),
        manifest=publishing.read(folder_of(video_id, chosen.number)),
        synthesisers=sorted(
            {one["synthesiser"] for (stage, segment), one in results.items() if stage == "audio" and segment}
        ),
    )


def listed(session: Session, *, limit: int) -> list[dict[str, Any]]:
    """List the newest videos, each with the row of its newest edition in the view `jobs`."""
    newest = select(Edition.video_id, func.max(Edition.number).label("number")).group_by(Edition.video_id).subquery()
    query = (
        select(Video.title, Video.created_at.label("video_created_at"), JOBS)
        .where(Video.deleting_at.is_(None))
        .join(newest, newest.c.video_id == Video.id)
        .join(JOBS, (JOBS.c.video_id == Video.id) & (JOBS.c.edition == newest.c.number))
        .order_by(Video.created_at.desc(), Video.id)
        .limit(limit)
    )
    return [_as_dict(row) for row in session.execute(query)]


def jobs(session: Session, *, limit: int) -> list[dict[str, Any]]:
    """List the newest rows of the view `jobs`."""
    return [_as_dict(row) for row in session.execute(select(JOBS).order_by(JOBS.c.job_id.desc()).limit(limit))]


def instant(value: Any) -> datetime | None:
    """Return a time from the database as a datetime in UTC; SQLite stores times as texts."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _as_dict(row: Row[Any]) -> dict[str, Any]:
    return {name: instant(value) if name.endswith("_at") else value for name, value in row._mapping.items()}


def _stage_status(stage: str, rows: Sequence[Row[Any]], results: dict[tuple[str, str], Any]) -> StageStatus:
    own = [row for row in rows if row.stage == stage]
    parts = [row for row in own if row.segment] if stage in SPLIT else own
    stage_state = next((row.state for row in own if not row.segment), "DONE")
    states = [row.state for row in parts]
    active_state = next((state for state in ("RUNNING", "READY", "ERROR") if state in states), stage_state)
    state = stage_state if stage_state in ("DONE", "ERROR") else active_state
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


def _segment_status(
    number: int, scene: dict[str, Any], rows: Sequence[Row[Any]], results: dict[tuple[str, str], Any]
) -> SegmentStatus:
    own = {row.stage: row for row in rows if row.segment == str(number)}
    finished = [results[stage, str(number)] for stage in SPLIT if (stage, str(number)) in results]
    return SegmentStatus(
        number=number,
        title=scene["title"],
        audio=own["audio"].state if "audio" in own else "NEW",
        visuals=own["visuals"].state if "visuals" in own else "NEW",
        attempts=sum(row.attempt for row in own.values()),
        takeovers=sum(row.takeovers for row in own.values()),
        made=any(one["made"] for one in finished) if len(finished) == len(SPLIT) else None,
        error=next((row.error for row in own.values() if row.state == "ERROR" and row.error), None),
        reason=next((row.reason for row in own.values() if row.state == "NEW" and row.reason), None),
        parts={name: part for one in finished for name, part in one["parts"].items()},
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
