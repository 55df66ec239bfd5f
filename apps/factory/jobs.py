"""Jobs: how the factory uses Holdfast: a pipeline of five stages, two of them split into segments.

    script ──▶ audio (each scene) ──▶ visuals (each scene) ──▶ render ──▶ commit

Stages that start a program (the synthesiser, ffmpeg) run in a process of their own. A timeout, a cancellation, a lost
lease or the death of the worker kills it with its children, before another worker can start the same segment.

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
# A short lease and poll interval, so that a lost worker is noticed soon. Runs are kept, because the page of a video
# shows them, and the files of its segments are artifacts of these runs.
DEFAULTS = {"lease": 10, "poll_interval": 0.25, "kill_grace": 2, "retention": 0, "retention_failed": 0}

hf = Holdfast(**{name: value for name, value in DEFAULTS.items() if f"HOLDFAST_{name.upper()}" not in os.environ})  # type: ignore[arg-type]
if not isinstance(hf.settings.artifacts, Path):
    raise InvalidSetting(
        "HOLDFAST_ARTIFACTS must be a folder for the factory, not object storage, because ffmpeg reads from it"
    )
# Only the factory starts this pipeline: a run started in another way would belong to no edition.
video = hf.pipeline("factory.video", queue=QUEUE, only_from_code=True, start_at="/videos")

_policy: dict[str, Any] = {
    "max_attempts": settings().attempts,
    "retry": Retry(delay=settings().retry_delay),
    "timeout": settings().timeout,
    "on_timeout": "retry",
    "max_takeovers": 50,  # killed workers should not make a segment fail
}
_isolated: dict[str, Any] = {**_policy, "isolation": "process"}


@video.stage(**_policy)
def script(ctx: Context, scenes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Split the script into segments, one per scene; the scenes were checked when the script was submitted."""
    return ctx.segments([Scene.from_json(scene).as_json() for scene in scenes])


@video.stage(after=script, each="scene", **_isolated)
def audio(ctx: Context, scene: dict[str, Any], video_format: dict[str, Any]) -> dict[str, Any]:
    """Speak the narration of a scene."""
    narration = _narration(scene, video_format)
    inputs = {"narration": narration.scene.narration, "video_format": video_format, "synthesiser": speech.synthesiser()}
    product = _cache().provide(ctx, inputs, {"speech.wav": narration.write_wave, "speech.json": narration.write_info})
    info = stage_work.SpeechInfo.from_json(product.paths["speech.json"].read_bytes())
    return _result(product, milliseconds=info.milliseconds, synthesiser=info.synthesiser)


@video.stage(after=audio, each="scene", **_isolated)
def visuals(ctx: Context, scene: dict[str, Any], audio: dict[str, Any], video_format: dict[str, Any]) -> dict[str, Any]:
    """Draw a scene to fit its sound, and encode it."""
    film = _film(ctx, scene, audio, video_format)
    sound = {name: part["sha256"] for name, part in audio["parts"].items()}
    inputs = {"scene": scene, "video_format": video_format, "sound": sound, "encoder": encoding.version()}
    product = _cache().provide(ctx, inputs, {"film.mp4": film.write, "thumbnail.jpg": film.write_thumbnail})
    return _result(product)


@video.stage(after=visuals, **_isolated)
def render(
    ctx: Context,
    script: list[dict[str, Any]],
    audio: list[dict[str, Any]],
    segments: list[dict[str, Any]],
    video_format: dict[str, Any],
) -> dict[str, Any]:
    """Check every segment, and join them into a video with captions, chapters and a poster."""
    full_video = _full_video(ctx, script, audio, segments, video_format)
    parts = [{name: part["sha256"] for name, part in one["parts"].items()} for one in (*audio, *segments)]
    titles = [scene["title"] for scene in script]
    inputs = {"parts": parts, "titles": titles, "video_format": video_format, "encoder": encoding.version()}
    product = _cache().provide(ctx, inputs, full_video.writers)
    return _result(product, milliseconds=full_video.chapters[-1].end_ms, title=full_video.title)


@video.stage(after=render, **_isolated)
def commit(
    ctx: Context,
    script: list[dict[str, Any]],
    audio: list[dict[str, Any]],
    visuals: list[dict[str, Any]],
    render: dict[str, Any],
    video_format: dict[str, Any],
    video_id: str,
    edition: int,
) -> dict[str, Any]:
    """Publish the video: first its files, then the manifest. A file that was damaged is rendered again."""

    @cache
    def full_video() -> stage_work.FullVideo:
        return _full_video(ctx, script, audio, visuals, video_format)

    def writer(name: str) -> Write:
        return lambda path: full_video().writers[name](path)

    files = {name: _cache().fetch(ctx, part, writer(name)) for name, part in render["parts"].items()}
    about = {
        "video": video_id,
        "edition": edition,
        "title": render["title"],
        "milliseconds": render["milliseconds"],
        "segments": len(audio),
        "video_format": video_format,
        "synthesiser": sorted({one["synthesiser"] for one in audio}),
        "encoder": encoding.version(),
    }
    return publishing.publish(folder_of(video_id, edition), files, about)


def folder_of(video_id: str, edition: int) -> Path:
    """Return the folder that an edition is published to."""
    return settings().output / video_id / str(edition)


@cache
def _records() -> MediaRecords:
    return MediaRecords(hf.settings.url)


def _cache() -> MediaCache:
    return MediaCache(hf, _records())


def _result(product: Product, **more: Any) -> dict[str, Any]:
    return {"parts": {name: part.as_json() for name, part in product.parts.items()}, "made": product.made, **more}


def _narration(scene: Mapping[str, Any], video_format: Mapping[str, Any]) -> stage_work.Narration:
    return stage_work.Narration(scene=Scene.from_json(dict(scene)), video_format=Format(**video_format))


def _film(ctx: Context, scene: dict[str, Any], audio: dict[str, Any], video_format: dict[str, Any]) -> stage_work.Film:
    narration = _narration(scene, video_format)
    wave = _cache().fetch(ctx, audio["parts"]["speech.wav"], narration.write_wave)
    info = _cache().fetch(ctx, audio["parts"]["speech.json"], narration.write_info)
    return stage_work.Film(
        scene=narration.scene,
        video_format=narration.video_format,
        speech=stage_work.SpeechInfo.from_json(info.read_bytes()),
        wave=wave,
        picture=_picture(narration.scene.picture),
    )


def _full_video(
    ctx: Context,
    script: list[dict[str, Any]],
    audio: list[dict[str, Any]],
    visuals: list[dict[str, Any]],
    video_format: dict[str, Any],
) -> stage_work.FullVideo:
    segments = [_segment(ctx, *one, video_format) for one in zip(script, audio, visuals, strict=True)]
    return stage_work.FullVideo(segments=segments, video_format=Format(**video_format))


def _segment(
    ctx: Context, scene: dict[str, Any], audio: dict[str, Any], visuals: dict[str, Any], video_format: dict[str, Any]
) -> stage_work.Segment:
    film = _film(ctx, scene, audio, video_format)
    return stage_work.Segment(
        scene=film.scene,
        speech=film.speech,
        wave=film.wave,
        film=_cache().fetch(ctx, visuals["parts"]["film.mp4"], film.write),
    )


def _picture(digest: str | None) -> bytes | None:
    if digest is None:
        return None
    content = _records().picture(digest)
    if content is None:
        raise GiveUp(f"the picture {digest[:12]}… no longer exists", failure_type="PICTURE_MISSING")
    return content
