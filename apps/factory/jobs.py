"""Jobs: all that the factory asks of Holdfast: a pipeline of five stages, two of them split into segments.

    script ──▶ audio (each scene) ──▶ visuals (each scene) ──▶ render ──▶ commit

Whatever starts a program (the synthesiser, ffmpeg) runs in a process of its own: a timeout, a cancel, a lost lease or
the death of the worker ends it with all that it started, before someone else can begin the same segment.

    holdfast orchestrator apps.factory.jobs:hf
    holdfast worker apps.factory.jobs:hf -q factory -c 1 --no-orchestrator
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from apps.factory import encoding, publishing, speech, stage_work
from apps.factory.formats import Format
from apps.factory.media_cache import MediaCache, Product, Write
from apps.factory.media_records import MediaRecords
from apps.factory.scenes import Scene
from apps.factory.settings import settings
from holdfast import Context, GiveUp, Holdfast, InvalidSetting, Retry

QUEUE = "factory"
# A lost worker is to be missed soon, and on SQLite other processes are heard of by looking. A video is shown by the
# runs that made it, and its segments are theirs: they stay.
USUAL = {"lease": 10, "tick": 0.25, "kill_grace": 2, "retain": 0, "retain_failed": 0}

hf = Holdfast(**{name: value for name, value in USUAL.items() if f"HOLDFAST_{name.upper()}" not in os.environ})  # type: ignore[arg-type]
if not isinstance(hf.settings.artifacts, Path):
    raise InvalidSetting(
        "HOLDFAST_ARTIFACTS: the factory's is a folder, as ffmpeg reads from it; not an object storage"
    )
# An edition names its run: one that someone repeats past the factory would belong to no edition.
video = hf.pipeline("factory.video", queue=QUEUE, only_from_code=True, start_at="/videos")

_policy: dict[str, Any] = {
    "max_attempts": settings().attempts,
    "retry": Retry(delay=settings().retry_delay),
    "timeout": settings().timeout,
    "on_timeout": "retry",
    "max_takeovers": 50,  # a worker that is killed is no fault of the segment that it had
}
_apart: dict[str, Any] = {**_policy, "isolation": "process"}


@video.stage(**_policy)
def script(ctx: Context, scenes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The scenes, as segments. They were checked when the script was handed in."""
    return ctx.segments([Scene.from_json(scene).as_json() for scene in scenes])


@video.stage(after=script, each="scene", **_apart)
def audio(ctx: Context, scene: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    """Speak a scene."""
    spoken = _narration(scene, shape)
    inputs = {"narration": spoken.scene.narration, "shape": shape, "synthesiser": speech.synthesiser()}
    made = _cache().provide(ctx, inputs, {"speech.wav": spoken.write_wave, "speech.json": spoken.write_told})
    told = stage_work.Told.from_json(made.paths["speech.json"].read_bytes())
    return _result(made, milliseconds=told.milliseconds, synthesiser=told.synthesiser)


@video.stage(after=audio, each="scene", **_apart)
def visuals(ctx: Context, scene: dict[str, Any], audio: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    """Draw a scene to its sound, and encode it."""
    film = _film(ctx, scene, audio, shape)
    sound = {name: part["sha256"] for name, part in audio["parts"].items()}
    inputs = {"scene": scene, "shape": shape, "sound": sound, "encoder": encoding.version()}
    made = _cache().provide(ctx, inputs, {"film.mp4": film.write, "thumbnail.jpg": film.write_thumbnail})
    return _result(made)


@video.stage(after=visuals, **_apart)
def render(
    ctx: Context,
    script: list[dict[str, Any]],
    audio: list[dict[str, Any]],
    segments: list[dict[str, Any]],
    shape: dict[str, Any],
) -> dict[str, Any]:
    """Check every segment, and join them to a video with captions, chapters and a poster."""
    whole = _whole(ctx, script, audio, segments, shape)
    parts = [{name: part["sha256"] for name, part in one["parts"].items()} for one in (*audio, *segments)]
    titles = [scene["title"] for scene in script]
    inputs = {"parts": parts, "titles": titles, "shape": shape, "encoder": encoding.version()}
    made = _cache().provide(ctx, inputs, whole.writers)
    return _result(made, milliseconds=whole.chapters[-1].ends, title=whole.title)


@video.stage(after=render, **_apart)
def commit(
    ctx: Context,
    script: list[dict[str, Any]],
    audio: list[dict[str, Any]],
    visuals: list[dict[str, Any]],
    render: dict[str, Any],
    shape: dict[str, Any],
    video_id: str,
    edition: int,
) -> dict[str, Any]:
    """Publish it: the files, then the manifest. A file that was damaged since is joined again."""

    @cache
    def whole() -> stage_work.Whole:
        return _whole(ctx, script, audio, visuals, shape)

    def again(name: str) -> Write:
        return lambda path: whole().writers[name](path)

    files = {name: _cache().fetch(ctx, part, again(name)) for name, part in render["parts"].items()}
    about = {
        "video": video_id,
        "edition": edition,
        "title": render["title"],
        "milliseconds": render["milliseconds"],
        "segments": len(audio),
        "shape": shape,
        "synthesiser": sorted({one["synthesiser"] for one in audio}),
        "encoder": encoding.version(),
    }
    return publishing.publish(folder_of(video_id, edition), files, about)


def folder_of(video_id: str, edition: int) -> Path:
    """Where an edition is published."""
    return settings().output / video_id / str(edition)


@cache
def _records() -> MediaRecords:
    return MediaRecords(hf.settings.url)


def _cache() -> MediaCache:
    return MediaCache(hf, _records())


def _result(product: Product, **more: Any) -> dict[str, Any]:
    return {"parts": {name: part.as_json() for name, part in product.parts.items()}, "made": product.made, **more}


def _narration(scene: Mapping[str, Any], shape: Mapping[str, Any]) -> stage_work.Narration:
    return stage_work.Narration(scene=Scene.from_json(dict(scene)), shape=Format(**shape))


def _film(ctx: Context, scene: dict[str, Any], audio: dict[str, Any], shape: dict[str, Any]) -> stage_work.Film:
    spoken = _narration(scene, shape)
    wave = _cache().fetch(ctx, audio["parts"]["speech.wav"], spoken.write_wave)
    told = _cache().fetch(ctx, audio["parts"]["speech.json"], spoken.write_told)
    return stage_work.Film(
        scene=spoken.scene,
        shape=spoken.shape,
        told=stage_work.Told.from_json(told.read_bytes()),
        wave=wave,
        picture=_picture(spoken.scene.picture),
    )


def _whole(
    ctx: Context,
    script: list[dict[str, Any]],
    audio: list[dict[str, Any]],
    visuals: list[dict[str, Any]],
    shape: dict[str, Any],
) -> stage_work.Whole:
    pieces = [_piece(ctx, *one, shape) for one in zip(script, audio, visuals, strict=True)]
    return stage_work.Whole(pieces=pieces, shape=Format(**shape))


def _piece(
    ctx: Context, scene: dict[str, Any], audio: dict[str, Any], seen: dict[str, Any], shape: dict[str, Any]
) -> stage_work.Piece:
    film = _film(ctx, scene, audio, shape)
    return stage_work.Piece(
        scene=film.scene,
        told=film.told,
        wave=film.wave,
        film=_cache().fetch(ctx, seen["parts"]["film.mp4"], film.write),
    )


def _picture(digest: str | None) -> bytes | None:
    if digest is None:
        return None
    found = _records().picture(digest)
    if found is None:
        raise GiveUp(f"the picture {digest[:12]}… is not there any more", failure_type="PICTURE_MISSING")
    return found
