"""Stage work: what each stage makes of its input. No engine and no database: the same input, the same bytes.

narrate   a scene ──▶ a wave, and when each word is spoken
film      a scene and its wave ──▶ a piece of video
finish    all pieces ──▶ the video, its captions, its chapters, its poster
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

BREATH = RATE // 3  # samples of silence after each scene
THUMBNAIL = 320


@dataclass(frozen=True, kw_only=True)
class Told:
    """What is known of a scene's sound: how many pictures it takes, and its words."""

    frames: int
    milliseconds: int
    synthesiser: str
    words: tuple[Word, ...]

    def as_json(self) -> bytes:
        words = [[word.text, word.begins, word.ends] for word in self.words]
        told = {"frames": self.frames, "milliseconds": self.milliseconds, "synthesiser": self.synthesiser}
        return json.dumps(told | {"words": words}, ensure_ascii=False, sort_keys=True).encode()

    @staticmethod
    def from_json(content: bytes) -> Told:
        found: dict[str, Any] = json.loads(content)
        return Told(**{**found, "words": tuple(Word(*word) for word in found["words"])})


@dataclass(frozen=True, kw_only=True)
class Narration:
    """A scene, spoken when it is first asked for."""

    scene: Scene
    shape: Format

    @cached_property
    def _spoken(self) -> tuple[bytes, Told]:
        found = speech.speak(self.scene.narration, voice=self.shape.voice, pace=self.shape.pace)
        frames = self.shape.frames(len(found.samples) // 2 + BREATH)
        # As long as its pictures to the sample: joined, sound and pictures never drift apart.
        samples = found.samples.ljust(frames * self.shape.samples_a_frame * 2, b"\0")
        told = Told(
            frames=frames,
            milliseconds=frames * 1000 // self.shape.fps,
            synthesiser=found.synthesiser,
            words=found.words,
        )
        return speech.as_wave(samples), told

    def write_wave(self, path: Path) -> None:
        path.write_bytes(self._spoken[0])

    def write_told(self, path: Path) -> None:
        path.write_bytes(self._spoken[1].as_json())


@dataclass(frozen=True, kw_only=True)
class Film:
    """A scene that has been spoken, to be drawn."""

    scene: Scene
    shape: Format
    told: Told
    wave: Path
    picture: bytes | None

    @cached_property
    def _slide(self) -> slides.Slide:
        return slides.compose(self.scene, self.shape, picture=self.picture)

    def write(self, path: Path) -> None:
        pictures = animation.frames(self._slide, captions.cues(self.told.words), self.shape, self.told.frames)
        encoding.encode(path, pictures, self.wave, self.shape)

    def write_thumbnail(self, path: Path) -> None:
        slides.save(self._slide.whole(), path, width=THUMBNAIL)


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A segment that is ready to be joined."""

    scene: Scene
    told: Told
    film: Path
    wave: Path


@dataclass(frozen=True, kw_only=True)
class Whole:
    """All segments of a video, to be joined."""

    pieces: Sequence[Piece]
    shape: Format

    @property
    def title(self) -> str:
        return self.pieces[0].scene.title

    @property
    def chapters(self) -> list[Chapter]:
        found, frames = list[Chapter](), 0
        for piece in self.pieces:
            begins, frames = self._at(frames), frames + piece.told.frames
            found.append(Chapter(title=piece.scene.title, begins=begins, ends=self._at(frames)))
        return found

    @property
    def cues(self) -> list[Cue]:
        """Those of each scene by itself, as its slide shows them: none begins in one and ends in the next."""
        return [
            cue
            for piece, chapter in zip(self.pieces, self.chapters, strict=True)
            for cue in captions.cues([word.later(chapter.begins) for word in piece.told.words])
        ]

    @cached_property
    def sound(self) -> bytes:
        return speech.as_wave(b"".join(speech.from_wave(piece.wave.read_bytes()) for piece in self.pieces))

    @cached_property
    def gain(self) -> float:
        return encoding.gain_for(self.sound)

    @property
    def writers(self) -> dict[str, Callable[[Path], None]]:
        """Who writes which of its files."""
        return {
            "video.mp4": self.write_video,
            "captions.srt": self.write_captions,
            "chapters.json": self.write_chapters,
            "poster.jpg": self.write_poster,
        }

    def write_video(self, path: Path) -> None:
        films = [piece.film for piece in self.pieces]
        encoding.join(path, films, self.sound, self.chapters, title=self.title, gain=self.gain)

    def write_captions(self, path: Path) -> None:
        path.write_text(captions.srt(self.cues), "utf-8")

    def write_chapters(self, path: Path) -> None:
        told = [{"title": one.title, "begins": one.begins, "ends": one.ends} for one in self.chapters]
        path.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", "utf-8")

    def write_poster(self, path: Path) -> None:
        slides.save(slides.compose(self.pieces[0].scene, self.shape).whole(), path)

    def _at(self, frames: int) -> int:
        return frames * 1000 // self.shape.fps
