"""Encoding: encodes pictures and sound with ffmpeg. The same input always gives the same bytes.

With one thread, the bit-exact flags and no metadata, ffmpeg's output does not depend on when or where it runs.
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

TARGET_LOUDNESS, MAX_PEAK, MAX_GAIN = -16.0, -1.5, 20.0  # in LUFS, dBFS and dB
_BIT_EXACT = ("-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact", "-map_metadata", "-1")
_VIDEO = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "23", "-pix_fmt", "yuv420p", "-threads", "1")
_AUDIO = ("-c:a", "aac", "-b:a", "96k", "-ac", "1", "-ar", str(RATE), "-threads", "1")


class EncodingFailed(Exception):
    """ffmpeg failed; the message has the end of its output."""


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """A part of the video that a player can jump to."""

    title: str
    start_ms: int
    end_ms: int


@cache
def program() -> str:
    return str(imageio_ffmpeg.get_ffmpeg_exe())


@cache
def version() -> str:
    """Return the version of ffmpeg, which every encoded file depends on."""
    output = subprocess.run([program(), "-version"], capture_output=True, text=True, check=True).stdout
    return output.split()[2]


def encode(path: Path, pictures: Iterable[bytes], sound: Path, video_format: Format) -> None:
    """Encode a segment: the pictures, which are drawn while they are encoded, and its sound."""
    size = f"{video_format.width}x{video_format.height}"
    raw = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", str(video_format.fps), "-i", "pipe:0")
    # Key frames at the start and every two seconds let players seek, and let `join` copy segments without encoding.
    keys = ("-g", str(2 * video_format.fps), "-sc_threshold", "0")
    command = (*raw, "-i", str(sound), "-map", "0:v", "-map", "1:a", *_VIDEO, *keys, *_AUDIO, *_movie(path))
    _run(command, pictures)


def join(
    path: Path, segments: Sequence[Path], sound: bytes, chapters: Sequence[Chapter], *, title: str, gain: float
) -> None:
    """Join segments into a video: copy their pictures, and encode their sound as one track, amplified by `gain` dB."""
    with _unnamed_file(_segment_list(segments)) as listed, _unnamed_file(_metadata(chapters, title)) as metadata:
        command = (
            *("-f", "concat", "-safe", "0", "-protocol_whitelist", "file,fd,pipe", "-i", _path(listed)),
            *("-i", "pipe:0", "-f", "ffmetadata", "-i", _path(metadata)),
            *("-map", "0:v", "-map", "1:a", "-map_chapters", "2", "-c:v", "copy"),
            *("-af", f"volume={gain:.1f}dB", *_AUDIO),
            *_movie(path, metadata="2"),
        )
        _run(command, [sound], passing=(listed.fileno(), metadata.fileno()))


def gain_for(sound: bytes) -> float:
    """Return the gain in decibels that brings a sound to broadcast loudness without clipping."""
    # One constant gain keeps the dynamics of the speech, and the same samples always get the same gain.
    command = ("-i", "pipe:0", "-af", "ebur128=peak=sample:framelog=quiet", "-f", "null", "-")
    output = _run(command, [sound], level="info")
    loudness = _last_number(r"I:\s+(-?[\d.]+|-inf) LUFS", output)
    peak = _last_number(r"Peak:\s+(-?[\d.]+|-inf) dBFS", output)
    return round(max(-MAX_GAIN, min(TARGET_LOUDNESS - loudness, MAX_PEAK - peak, MAX_GAIN)), 1)


def _movie(path: Path, *, metadata: str = "-1") -> tuple[str, ...]:
    flags = tuple(
        metadata if previous == "-map_metadata" else flag
        for previous, flag in zip(("", *_BIT_EXACT), _BIT_EXACT, strict=False)
    )
    # The index comes first, so that a player can start before it has the whole file.
    return (*flags, "-movflags", "+faststart", "-f", "mp4", "-y", str(path))


def _last_number(pattern: str, output: str) -> float:
    numbers = re.findall(pattern, output)
    return -70.0 if not numbers or numbers[-1] == "-inf" else float(numbers[-1])


def _run(command: Sequence[str], content: Iterable[bytes], *, passing: Sequence[int] = (), level: str = "error") -> str:
    """Run ffmpeg with `content` as its standard input; return its output, or raise EncodingFailed."""
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
        output = errors.read().decode("utf-8", "replace").strip()
    if process.returncode:
        raise EncodingFailed(f"ffmpeg exited with code {process.returncode}: {output[-500:]}")
    return output


def _feed(process: subprocess.Popen[bytes], content: Iterable[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # ffmpeg ended early; its output says why
        for block in content:
            process.stdin.write(block)
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


@contextmanager
def _unnamed_file(text: str) -> Iterator[IO[bytes]]:
    """Yield a temporary file without a name, which disappears with this process even if it is killed."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        yield file


def _path(file: IO[bytes]) -> str:
    return f"/dev/fd/{file.fileno()}"


def _segment_list(segments: Sequence[Path]) -> str:
    quoted = [str(path.resolve()).replace("'", r"'\''") for path in segments]
    return "ffconcat version 1.0\n" + "".join(f"file 'file:{path}'\n" for path in quoted)


def _metadata(chapters: Sequence[Chapter], title: str) -> str:
    parts = [f";FFMETADATA1\ntitle={_escaped(title)}\n"]
    for one in chapters:
        parts.append(
            f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={one.start_ms}\nEND={one.end_ms}\ntitle={_escaped(one.title)}\n"
        )
    return "".join(parts)


def _escaped(text: str) -> str:
    return re.sub(r"([=;#\\\n])", r"\\\1", text)
