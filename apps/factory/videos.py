"""Videos: submits, edits and deletes videos, and adds pictures.

Submitting and editing a script each write the edition and its run in one transaction.
"""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import delete as remove
from sqlalchemy import exists, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from apps.factory import jobs, publishing, scripts, slides, speech
from apps.factory.formats import Format
from apps.factory.scenes import Scene
from apps.factory.tables import Copy, Edition, MediaProduct, Picture, Video, database
from holdfast import RunFilter, RunInUse, RunNotFound, Snapshot

MAX_PICTURE_BYTES = 3_000_000
PAGE = 500
ACTIVE = ("queued", "running")
NAME = re.compile(r"[a-z0-9-]{1,80}")


class VideoNotFound(Exception):
    """There is no such video."""


class VideoBusy(Exception):
    """The video can't be deleted, because it is being made."""


class EditedMeanwhile(Exception):
    """Another edition was submitted in the meantime; nothing was changed."""


def create(text: str, video_format: Format, *, video_id: str | None = None) -> Edition:
    """Create a video and submit its first edition; raise ScriptInvalid or VoiceUnknown."""
    speech.check(video_format.voice)
    scenes = _parse(text)
    new_id = video_id or _new_id(scenes[0].title)
    with database().write() as session:
        session.add(Video(id=new_id, title=scenes[0].title, created_at=jobs.hf.clock.now()))
        session.flush()
        return _submit(session, new_id, 1, text, scenes, video_format)


def edit(video_id: str, text: str, *, after: int | None = None, video_format: Format | None = None) -> Edition:
    """Submit the next edition of a video; only the changed scenes are made again.

    `after` is the edition that was edited; raises EditedMeanwhile if it is no longer the newest.
    """
    if video_format is not None:
        speech.check(video_format.voice)
    scenes = _parse(text)
    try:
        with database().write() as session:
            video = _lock(session, video_id)  # no deletion can begin before this transaction commits
            current = newest(session, video_id)
            if after is not None and after != current.number:
                raise EditedMeanwhile(f"the newest edition is {current.number}, not {after}; edit that one instead")
            video.title = scenes[0].title
            chosen = video_format or Format(**current.video_format)
            return _submit(session, video_id, current.number + 1, text, scenes, chosen)
    except IntegrityError as error:
        raise EditedMeanwhile("another edition was submitted at the same time; edit that one instead") from error


def delete(video_id: str, *, by: str | None = None) -> None:
    """Delete a video: first its published files, then its runs with their artifacts, and its rows last.

    Raises VideoBusy while it is being made. After an interruption the video is listed as being deleted, and can't be
    used any more; calling this again finishes the deletion.
    """
    try:
        with database().write() as session:
            runs = _begin_deletion(session, video_id, now=jobs.hf.clock.now())
        publishing.unpublish(jobs.folder_of(video_id, 1).parent)
        for run_id in runs:
            _delete_run(run_id, by=by)
    except RunInUse as error:
        raise VideoBusy(f"{video_id} can't be deleted now: {error}") from error
    _delete_rows(video_id)


def deleting(session: Session) -> list[dict[str, Any]]:
    """List the videos whose deletion has begun but is not finished."""
    query = select(Video.id, Video.title, Video.deleting_at).where(Video.deleting_at.is_not(None)).order_by(Video.id)
    return [{"video_id": row.id, "title": row.title, "deleting_at": row.deleting_at} for row in session.execute(query)]


def add_picture(name: str, content: bytes) -> str:
    """Store a picture that scripts can show by this name, and return its SHA-256; or raise PictureInvalid."""
    if not scripts.PICTURE.fullmatch(name):
        raise slides.PictureInvalid(
            "the name of a picture may have at most 60 lower-case letters, digits, '-' and '_', and must not start with"
            " '-' or '_'"
        )
    if len(content) > MAX_PICTURE_BYTES:
        raise slides.PictureInvalid(f"a picture may have at most {MAX_PICTURE_BYTES:,} bytes")
    slides.open_picture(content)
    digest, now = sha256(content).hexdigest(), jobs.hf.clock.now()
    with database().write() as session:
        session.merge(Picture(name=name, sha256=digest, content=content, added_at=now))
    return digest


def pictures(session: Session) -> dict[str, str]:
    """Return the pictures that scripts can show, as name → SHA-256 of the newest content."""
    rows = session.execute(select(Picture.name, Picture.sha256).order_by(Picture.added_at))
    return {row.name: row.sha256 for row in rows}


def newest(session: Session, video_id: str) -> Edition:
    """Return the newest edition of a video, or raise VideoNotFound."""
    query = (
        select(Edition)
        .join(Video, Video.id == Edition.video_id)
        .where(Edition.video_id == video_id, Video.deleting_at.is_(None))
        .order_by(Edition.number.desc())
        .limit(1)
    )
    # Query only for valid names: a database refuses some texts, such as one with a zero byte.
    edition = session.scalar(query) if NAME.fullmatch(video_id) else None
    if edition is None:
        raise VideoNotFound(f"there is no video {video_id!r}")
    return edition


def _begin_deletion(session: Session, video_id: str, *, now: datetime) -> list[str]:
    """Mark a video as being deleted; return its pipeline runs, newest first, so that reruns go before the original."""
    video = _lock(session, video_id)
    pipelines = _pipelines(video_id)
    for run in pipelines:
        if run.state in ACTIVE or any(jobs.hf.count(RunFilter(parent=run.id, state=state)).number for state in ACTIVE):
            raise VideoBusy(f"{video_id} is being made by run {run.id}; cancel that run first")
    runs = [run.id for run in pipelines]
    for run_id in runs[:1]:  # check only the newest: a rerun may use an older run, and reruns are deleted first
        _delete_run(run_id, dry_run=True)
    editions = select(Edition.run_id).where(Edition.video_id == video_id)  # retention may have removed their runs
    own = Copy.job_id.in_(runs) | Copy.job_id.in_(editions)
    others = exists().where(Copy.key == MediaProduct.key, ~own)
    session.execute(remove(MediaProduct).where(MediaProduct.key.in_(select(Copy.key).where(own)), ~others))
    session.execute(remove(Copy).where(own))
    video.deleting_at = video.deleting_at or now
    return runs


def _delete_run(run_id: str, *, by: str | None = None, dry_run: bool = False) -> None:
    with suppress(RunNotFound):  # another deletion of the same video has removed it
        jobs.hf.delete(run_id, by=by, dry_run=dry_run)


def _delete_rows(video_id: str) -> None:
    with database().write() as session:
        session.execute(remove(Edition).where(Edition.video_id == video_id))
        session.execute(remove(Video).where(Video.id == video_id))


def _lock(session: Session, video_id: str) -> Video:
    """Lock a video against edits and deletions until this transaction ends; raise VideoNotFound if there is none."""
    video = session.get(Video, video_id, with_for_update=True) if NAME.fullmatch(video_id) else None
    if video is None:
        raise VideoNotFound(f"there is no video {video_id!r}")
    return video


def _pipelines(video_id: str) -> list[Snapshot]:
    """Return every pipeline run of a video, newest first."""
    run_filter = RunFilter(job=jobs.video.name, tag=("video", video_id))
    page = jobs.hf.search(run_filter, limit=PAGE)
    runs = list(page.items)
    while page.next is not None:
        page = jobs.hf.search(run_filter, limit=PAGE, after=page.next)
        runs += page.items
    return runs


def _parse(text: str) -> list[Scene]:
    """Parse a script; scenes refer to pictures by digest, so that replacing a picture changes no existing edition.

    Pictures are never removed, so a read transaction is enough, and a long script blocks no writer.
    """
    with database().read() as session:
        known = pictures(session)
    scenes = scripts.parse(text, pictures=known.keys()).scenes
    return [replace(scene, picture=known[scene.picture]) if scene.picture else scene for scene in scenes]


def _submit(
    session: Session, video_id: str, number: int, text: str, scenes: list[Scene], video_format: Format
) -> Edition:
    chosen = video_format.model_dump()
    run = jobs.video.using(connection=session, tags={"video": video_id, "edition": str(number)}).submit(
        scenes=[scene.as_json() for scene in scenes], video_format=chosen, video_id=video_id, edition=number
    )
    edition = Edition(
        video_id=video_id,
        number=number,
        script=text,
        video_format=chosen,
        run_id=run.id,
        submitted_at=jobs.hf.clock.now(),
    )
    session.add(edition)
    session.flush()
    session.expunge(edition)
    return edition


def _new_id(title: str) -> str:
    """Return an id for URLs: the title in a readable form, and a random suffix."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-")
    return f"{slug or 'video'}-{secrets.token_hex(3)}"
