"""Videos: handing in a script, editing it, deleting it, handing in pictures.

Handing in and editing are each one transaction with the run that it starts.
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
from apps.factory.tables import Copy, Edition, Made, Picture, Video, database
from holdfast import RunFilter, RunInUse, RunNotFound, Snapshot

LARGEST_PICTURE = 3_000_000
PAGE = 500
ACTIVE = ("queued", "running")
NAME = re.compile(r"[a-z0-9-]{1,80}")


class VideoNotFound(Exception):
    """There is no such video."""


class VideoBusy(Exception):
    """Something of the video is under way, so it can't be deleted."""


class EditedMeanwhile(Exception):
    """Someone else has handed in an edition since; nothing was changed."""


def create(text: str, shape: Format, *, video_id: str | None = None) -> Edition:
    """A new video and its first edition, made as soon as a worker is free; or ScriptInvalid, or VoiceUnknown."""
    speech.check(shape.voice)
    scenes = _checked(text)
    name = video_id or _name(scenes[0].title)
    with database().write() as session:
        session.add(Video(id=name, title=scenes[0].title, made_at=jobs.hf.clock.now()))
        session.flush()
        return _submitted(session, name, 1, text, scenes, shape)


def edit(video_id: str, text: str, *, after: int | None = None, shape: Format | None = None) -> Edition:
    """The next edition of a video. Only what the edit has changed is made anew.

    `after` is the edition that was edited; EditedMeanwhile if it is not the newest any more.
    """
    if shape is not None:
        speech.check(shape.voice)
    scenes = _checked(text)
    try:
        with database().write() as session:
            video = _locked(session, video_id)  # no one can begin to delete it before we have committed
            before = newest(session, video_id)
            if after is not None and after != before.number:
                raise EditedMeanwhile(f"the newest edition is {before.number}, not {after}; begin from that one")
            video.title = scenes[0].title
            wanted = shape or Format(**before.shape)
            return _submitted(session, video_id, before.number + 1, text, scenes, wanted)
    except IntegrityError as error:
        raise EditedMeanwhile("someone else has handed in an edition just now; look at it first") from error


def delete(video_id: str, *, by: str | None = None) -> None:
    """Delete a video: its published files first, then its runs with their artifacts, its rows last.

    VideoBusy while it is being made. The next call finishes a deletion that was interrupted: until then the video is
    listed as being deleted, and nothing else can be done with it.
    """
    try:
        with database().write() as session:
            runs = _begun_to_delete(session, video_id, now=jobs.hf.clock.now())
        publishing.unpublish(jobs.folder_of(video_id, 1).parent)
        for run_id in runs:
            _delete_run(run_id, by=by)
    except RunInUse as error:
        raise VideoBusy(f"{video_id} can't be deleted now: {error}") from error
    _forget(video_id)


def deleting(session: Session) -> list[dict[str, Any]]:
    """The videos whose deletion was begun and not finished."""
    asked = select(Video.id, Video.title, Video.deleting_at).where(Video.deleting_at.is_not(None)).order_by(Video.id)
    return [{"video_id": row.id, "title": row.title, "deleting_at": row.deleting_at} for row in session.execute(asked)]


def add_picture(name: str, content: bytes) -> str:
    """Keep a picture for scripts to show by this name; its SHA-256. PictureInvalid, and nothing is kept."""
    if not scripts.PICTURE.fullmatch(name):
        raise slides.PictureInvalid("a picture's name has small letters, digits, '-' and '_', at most 60")
    if len(content) > LARGEST_PICTURE:
        raise slides.PictureInvalid(f"a picture has at most {LARGEST_PICTURE:,} bytes")
    slides.open_picture(content)
    digest, now = sha256(content).hexdigest(), jobs.hf.clock.now()
    with database().write() as session:
        session.merge(Picture(name=name, sha256=digest, content=content, added_at=now))
    return digest


def pictures(session: Session) -> dict[str, str]:
    """The pictures that scripts may show: name → SHA-256 of the newest."""
    rows = session.execute(select(Picture.name, Picture.sha256).order_by(Picture.added_at))
    return {row.name: row.sha256 for row in rows}


def newest(session: Session, video_id: str) -> Edition:
    """The newest edition of a video, or VideoNotFound."""
    asked = (
        select(Edition)
        .join(Video, Video.id == Edition.video_id)
        .where(Edition.video_id == video_id, Video.deleting_at.is_(None))
        .order_by(Edition.number.desc())
        .limit(1)
    )
    # What no video is called is not asked for: there are texts that a database does not take.
    found = session.scalar(asked) if NAME.fullmatch(video_id) else None
    if found is None:
        raise VideoNotFound(f"there is no video {video_id!r}")
    return found


def _begun_to_delete(session: Session, video_id: str, *, now: datetime) -> list[str]:
    """Mark a video, and say which pipelines must go, the newest first: a rerun before the one that it repeats."""
    video = _locked(session, video_id)
    found = _pipelines(video_id)
    for run in found:
        if run.state in ACTIVE or any(jobs.hf.count(RunFilter(parent=run.id, state=state)).number for state in ACTIVE):
            raise VideoBusy(f"{video_id} is being made by run {run.id}: cancel that, and delete it when it has stopped")
    runs = [run.id for run in found]
    for run_id in runs[:1]:  # an older one may be in use by a newer rerun, which goes first
        _delete_run(run_id, dry_run=True)
    editions = select(Edition.run_id).where(Edition.video_id == video_id)  # retention may have removed their runs
    mine = Copy.job_id.in_(runs) | Copy.job_id.in_(editions)
    others = exists().where(Copy.key == Made.key, ~mine)
    session.execute(remove(Made).where(Made.key.in_(select(Copy.key).where(mine)), ~others))
    session.execute(remove(Copy).where(mine))
    video.deleting_at = video.deleting_at or now
    return runs


def _delete_run(run_id: str, *, by: str | None = None, dry_run: bool = False) -> None:
    with suppress(RunNotFound):  # another deletion of the same video is under way
        jobs.hf.delete(run_id, by=by, dry_run=dry_run)


def _forget(video_id: str) -> None:
    with database().write() as session:
        session.execute(remove(Edition).where(Edition.video_id == video_id))
        session.execute(remove(Video).where(Video.id == video_id))


def _locked(session: Session, video_id: str) -> Video:
    """A video that no one else edits or deletes before this transaction ends; or VideoNotFound."""
    found = session.get(Video, video_id, with_for_update=True) if NAME.fullmatch(video_id) else None
    if found is None:
        raise VideoNotFound(f"there is no video {video_id!r}")
    return found


def _pipelines(video_id: str) -> list[Snapshot]:
    """Every pipeline that makes or made an edition of a video, the newest first."""
    wanted = RunFilter(job=jobs.video.name, tag=("video", video_id))
    page = jobs.hf.search(wanted, limit=PAGE)
    found = list(page.items)
    while page.next is not None:
        page = jobs.hf.search(wanted, limit=PAGE, after=page.next)
        found += page.items
    return found


def _checked(text: str) -> list[Scene]:
    """The scenes of a script, their pictures by content: who replaces a picture changes no edition that there is.

    No picture is ever taken away, and to read a long text takes its time: no one has to wait for that.
    """
    with database().read() as session:
        known = pictures(session)
    found = scripts.parse(text, pictures=known.keys()).scenes
    return [replace(scene, picture=known[scene.picture]) if scene.picture else scene for scene in found]


def _submitted(session: Session, video_id: str, number: int, text: str, scenes: list[Scene], shape: Format) -> Edition:
    chosen = shape.model_dump()
    run = jobs.video.using(connection=session, tags={"video": video_id, "edition": str(number)}).submit(
        scenes=[scene.as_json() for scene in scenes], shape=chosen, video_id=video_id, edition=number
    )
    edition = Edition(
        video_id=video_id,
        number=number,
        script=text,
        shape=chosen,
        run_id=run.id,
        submitted_at=jobs.hf.clock.now(),
    )
    session.add(edition)
    session.flush()
    session.expunge(edition)
    return edition


def _name(title: str) -> str:
    """A name for addresses: what can be read of the title, and something that no other has."""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-")
    return f"{words or 'video'}-{secrets.token_hex(3)}"
