"""Stage work: makes the files of each stage, without Holdfast or a database. The same input gives the same bytes.

Narration   a scene ──▶ a wave, and the time of each word
Film        a scene and its wave ──▶ a video segment
FullVideo   all segments ──▶ the video, its captions, its chapters, its poster
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from apps.factory import animation, captions, encoding, slides, speech
from apps.factory.captions import Cue, Word
from apps.factory.encoding import Chapter
from apps.factory.formats import RATE, Format
from apps.factory.scenes import Scene

SILENCE = RATE // 3  # samples after each scene
THUMBNAIL = 320


@dataclass(frozen=True, kw_only=True)
class SpeechInfo:
    """The length of a scene's sound, and its words with their times."""

    frames: int
    milliseconds: int
    synthesiser: str
    words: tuple[Word, ...]

    def as_json(self) -> bytes:
        words = [[word.text, word.start_ms, word.end_ms] for word in self.words]
        data = {"frames": self.frames, "milliseconds": self.milliseconds, "synthesiser": self.synthesiser}
        return json.dumps(data | {"words": words}, ensure_ascii=False, sort_keys=True).encode()

    @staticmethod
    def from_json(content: bytes) -> SpeechInfo:
        data: dict[str, Any] = json.loads(content)
        return SpeechInfo(**{**data, "words": tuple(Word(*word) for word in data["words"])})


@dataclass(frozen=True, kw_only=True)
class Narration:
    """The narration of a scene, spoken when a file is first written."""

    scene: Scene
    video_format: Format

    @cached_property
    def _spoken(self) -> tuple[bytes, SpeechInfo]:
        spoken = speech.speak(self.scene.narration, voice=self.video_format.voice, pace=self.video_format.pace)
        frames = self.video_format.frames(len(spoken.samples) // 2 + SILENCE)
        # Pad the sound to the exact length of its pictures, so that they stay in sync when segments are joined.
        samples = spoken.samples.ljust(frames * self.video_format.samples_per_frame * 2, b"\0")
        info = SpeechInfo(
            frames=frames,
            milliseconds=frames * 1000 // self.video_format.fps,
            synthesiser=spoken.synthesiser,
            words=spoken.words,
        )
        return speech.as_wave(samples), info

    def write_wave(self, path: Path) -> None:
        path.write_bytes(self._spoken[0])

    def write_info(self, path: Path) -> None:
        path.write_bytes(self._spoken[1].as_json())


@dataclass(frozen=True, kw_only=True)
class Film:
    """The pictures of a scene, drawn to fit its sound."""

    scene: Scene
    video_format: Format
    speech: SpeechInfo
    wave: Path
    picture: bytes | None

    @cached_property
    def _slide(self) -> slides.Slide:
        return slides.compose(self.scene, self.video_format, picture=self.picture)

    def write(self, path: Path) -> None:
        pictures = animation.frames(
            self._slide, captions.cues(self.speech.words), self.video_format, self.speech.frames
        )
        encoding.encode(path, pictures, self.wave, self.video_format)

    def write_thumbnail(self, path: Path) -> None:
        slides.save(self._slide.image(), path, width=THUMBNAIL)


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A finished segment, ready to be joined."""

    scene: Scene
    speech: SpeechInfo
    film: Path
    wave: Path


@dataclass(frozen=True, kw_only=True)
class FullVideo:
    """A whole video, joined from its segments."""

    segments: Sequence[Segment]
    video_format: Format

    @property
    def title(self) -> str:
        return self.segments[0].scene.title

    @property
    def chapters(self) -> list[Chapter]:
        chapters, frames = list[Chapter](), 0
        for segment in self.segments:
            start_ms, frames = self._milliseconds(frames), frames + segment.speech.frames
            chapters.append(Chapter(title=segment.scene.title, start_ms=start_ms, end_ms=self._milliseconds(frames)))
        return chapters

    @property
    def cues(self) -> list[Cue]:
        """The captions, split scene by scene as the slides show them, so that none spans two scenes."""
        return [
            cue
            for segment, chapter in zip(self.segments, self.chapters, strict=True)
            for cue in captions.cues([word.later(chapter.start_ms) for word in segment.speech.words])
        ]

    @cached_property
    def sound(self) -> bytes:
        return speech.as_wave(b"".join(speech.from_wave(segment.wave.read_bytes()) for segment in self.segments))

    @cached_property
    def gain(self) -> float:
        return encoding.gain_for(self.sound)

    @property
    def writers(self) -> dict[str, Callable[[Path], None]]:
        """The files of a video, with the function that writes each."""
        return {
            "video.mp4": self.write_video,
            "captions.srt": self.write_captions,
            "chapters.json": self.write_chapters,
            "poster.jpg": self.write_poster,
        }

    def write_video(self, path: Path) -> None:
        films = [segment.film for segment in self.segments]
        encoding.join(path, films, self.sound, self.chapters, title=self.title, gain=self.gain)

    def write_captions(self, path: Path) -> None:
        path.write_text(captions.srt(self.cues), "utf-8")

    def write_chapters(self, path: Path) -> None:
        chapters = [{"title": one.title, "start_ms": one.start_ms, "end_ms": one.end_ms} for one in self.chapters]
        path.write_text(json.dumps(chapters, ensure_ascii=False, indent=1) + "\n", "utf-8")

    def write_poster(self, path: Path) -> None:
        slides.save(slides.compose(self.segments[0].scene, self.video_format).image(), path)

    def _milliseconds(self, frames: int) -> int:
        return frames * 1000 // self.video_format.fps
