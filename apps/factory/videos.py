"""Videos: handing in a script, editing it, handing in pictures. Each is one transaction with the run that it starts."""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from hashlib import sha256

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from apps.factory import engine, scripts, slides, speech
from apps.factory.formats import Format
from apps.factory.scenes import Scene
from apps.factory.tables import Edition, Picture, Video, database

LARGEST_PICTURE = 3_000_000
NAME = re.compile(r"[a-z0-9-]{1,80}")


class VideoNotFound(Exception):
    """There is no such video."""


class EditedMeanwhile(Exception):
    """Someone else has handed in an edition since; nothing was changed."""


def create(text: str, shape: Format, *, video_id: str | None = None) -> Edition:
    """A new video and its first edition, made as soon as a worker is free; or ScriptInvalid, or VoiceUnknown."""
    speech.check(shape.voice)
    scenes = _checked(text)
    name = video_id or _name(scenes[0].title)
    with database().write() as session:
        session.add(Video(id=name, title=scenes[0].title, made_at=engine.hf.clock.now()))
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
            before = newest(session, video_id)
            if after is not None and after != before.number:
                raise EditedMeanwhile(f"the newest edition is {before.number}, not {after}; begin from that one")
            session.get_one(Video, video_id).title = scenes[0].title
            wanted = shape or Format(**before.shape)
            return _submitted(session, video_id, before.number + 1, text, scenes, wanted)
    except IntegrityError as error:
        raise EditedMeanwhile("someone else has handed in an edition just now; look at it first") from error


def add_picture(name: str, content: bytes) -> str:
    """Keep a picture for scripts to show by this name; its SHA-256. PictureInvalid, and nothing is kept."""
    if not scripts.PICTURE.fullmatch(name):
        raise slides.PictureInvalid("a picture's name has small letters, digits, '-' and '_', at most 60")
    if len(content) > LARGEST_PICTURE:
        raise slides.PictureInvalid(f"a picture has at most {LARGEST_PICTURE:,} bytes")
    slides.open_picture(content)
    digest, now = sha256(content).hexdigest(), engine.hf.clock.now()
    with database().write() as session:
        session.merge(Picture(name=name, sha256=digest, content=content, added_at=now))
    return digest


def pictures(session: Session) -> dict[str, str]:
    """The pictures that scripts may show: name → SHA-256 of the newest."""
    rows = session.execute(select(Picture.name, Picture.sha256).order_by(Picture.added_at))
    return {row.name: row.sha256 for row in rows}


def newest(session: Session, video_id: str) -> Edition:
    """The newest edition of a video, or VideoNotFound."""
    asked = select(Edition).where(Edition.video_id == video_id).order_by(Edition.number.desc()).limit(1)
    # What no video is called is not asked for: there are texts that a database does not take.
    found = session.scalar(asked) if NAME.fullmatch(video_id) else None
    if found is None:
        raise VideoNotFound(f"there is no video {video_id!r}")
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
    run = engine.video.using(connection=session, tags={"video": video_id, "edition": str(number)}).submit(
        scenes=[scene.as_json() for scene in scenes], shape=chosen, video_id=video_id, edition=number
    )
    edition = Edition(
        video_id=video_id,
        number=number,
        script=text,
        shape=chosen,
        run_id=run.id,
        submitted_at=engine.hf.clock.now(),
    )
    session.add(edition)
    session.flush()
    session.expunge(edition)
    return edition


def _name(title: str) -> str:
    """A name for addresses: what can be read of the title, and something that no other has."""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-")
    return f"{words or 'video'}-{secrets.token_hex(3)}"
