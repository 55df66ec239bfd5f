"""Encoding: pictures and sound become a file. The same input gives the same bytes, on any day and in any process.

One thread, the bit-exact flags and no metadata: ffmpeg writes nothing then that depends on when or where it ran.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import imageio_ffmpeg

from apps.factory.formats import RATE, Format

TARGET, PEAK, MOST_GAIN = -16.0, -1.5, 20.0
_SAME = ("-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact", "-map_metadata", "-1")
_VIDEO = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "23", "-pix_fmt", "yuv420p", "-threads", "1")
_AUDIO = ("-c:a", "aac", "-b:a", "96k", "-ac", "1", "-ar", str(RATE), "-threads", "1")


class EncodingFailed(Exception):
    """ffmpeg ended with an error; the last that it said."""


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """A part of the video that a player can jump to, in milliseconds."""

    title: str
    begins: int
    ends: int


@cache
def program() -> str:
    return str(imageio_ffmpeg.get_ffmpeg_exe())


@cache
def version() -> str:
    """Which ffmpeg this is: part of what every encoded file depends on."""
    said = subprocess.run([program(), "-version"], capture_output=True, text=True, check=True).stdout
    return said.split()[2]


def encode(path: Path, pictures: Iterable[bytes], sound: Path, shape: Format) -> None:
    """Write a segment: pictures that are drawn while they are encoded, with a wave beside them."""
    size = f"{shape.width}x{shape.height}"
    raw = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", str(shape.fps), "-i", "pipe:0")
    # A key frame at the start and every two seconds: players can jump, and segments can be joined as they are.
    keys = ("-g", str(2 * shape.fps), "-sc_threshold", "0")
    command = (*raw, "-i", str(sound), "-map", "0:v", "-map", "1:a", *_VIDEO, *keys, *_AUDIO, *_movie(path))
    _run(command, pictures)


def join(
    path: Path, segments: Sequence[Path], sound: bytes, chapters: Sequence[Chapter], *, title: str, gain: float
) -> None:
    """Write the whole video: the segments' pictures as they are, their sound as one track, made louder by so much."""
    with _kept(_listed(segments)) as listed, _kept(_metadata(chapters, title)) as metadata:
        command = (
            *("-f", "concat", "-safe", "0", "-protocol_whitelist", "file,fd,pipe", "-i", _name(listed)),
            *("-i", "pipe:0", "-f", "ffmetadata", "-i", _name(metadata)),
            *("-map", "0:v", "-map", "1:a", "-map_chapters", "2", "-c:v", "copy"),
            *("-af", f"volume={gain:.1f}dB", *_AUDIO),
            *_movie(path, metadata="2"),
        )
        _run(command, [sound], passing=(listed.fileno(), metadata.fileno()))


def gain_for(sound: bytes) -> float:
    """How many decibels bring a wave to the loudness of broadcasts, without any sample being cut off."""
    # Measured first and applied evenly: speech keeps its dynamics, and the same samples always get the same gain.
    command = ("-i", "pipe:0", "-af", "ebur128=peak=sample:framelog=quiet", "-f", "null", "-")
    said = _run(command, [sound], level="info")
    loudness, peak = _figure(r"I:\s+(-?[\d.]+|-inf) LUFS", said), _figure(r"Peak:\s+(-?[\d.]+|-inf) dBFS", said)
    return round(max(-MOST_GAIN, min(TARGET - loudness, PEAK - peak, MOST_GAIN)), 1)


def _movie(path: Path, *, metadata: str = "-1") -> tuple[str, ...]:
    same = tuple(
        metadata if before == "-map_metadata" else part for before, part in zip(("", *_SAME), _SAME, strict=False)
    )
    # The index first: a player begins before it has the whole file.
    return (*same, "-movflags", "+faststart", "-f", "mp4", "-y", str(path))


def _figure(pattern: str, said: str) -> float:
    found = re.findall(pattern, said)
    return -70.0 if not found or found[-1] == "-inf" else float(found[-1])


def _run(command: Sequence[str], content: Iterable[bytes], *, passing: Sequence[int] = (), level: str = "error") -> str:
    """Have ffmpeg do something with what its standard input is given; what it says, or EncodingFailed."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [program(), "-nostdin", "-hide_banner", "-loglevel", level, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=passing,
        )
        try:
            _feed(process, content)
            process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            _feed(process, ())
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace").strip()
    if process.returncode:
        raise EncodingFailed(f"ffmpeg ended with {process.returncode}: {said[-500:]}")
    return said


def _feed(process: subprocess.Popen[bytes], content: Iterable[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it ended before it had all: it says why
        for block in content:
            process.stdin.write(block)
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


@contextmanager
def _kept(text: str) -> Iterator[IO[bytes]]:
    """A file that has no name: whatever ends this process, nothing of it is left."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        yield file


def _name(file: IO[bytes]) -> str:
    return f"/dev/fd/{file.fileno()}"


def _listed(segments: Sequence[Path]) -> str:
    quoted = [str(path.resolve()).replace("'", r"'\''") for path in segments]
    return "ffconcat version 1.0\n" + "".join(f"file 'file:{path}'\n" for path in quoted)


def _metadata(chapters: Sequence[Chapter], title: str) -> str:
    parts = [f";FFMETADATA1\ntitle={_escaped(title)}\n"]
    for one in chapters:
        parts.append(f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={one.begins}\nEND={one.ends}\ntitle={_escaped(one.title)}\n")
    return "".join(parts)


def _escaped(text: str) -> str:
    return re.sub(r"([=;#\\\n])", r"\\\1", text)
