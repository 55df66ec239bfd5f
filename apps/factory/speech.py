"""Speech: turns a text into sound, with the time of each word. It uses the first of these that is installed:

    espeak-ng, the library     from the wheel `espeakng-loader`; it reports when each word starts
    espeak-ng, the program     the times of words are estimated from their lengths
    a tone for each word       if neither is installed; the result and the page say so

The same text always gives the same samples: nothing here depends on the clock or on random numbers.
"""

from __future__ import annotations

import ctypes
import importlib
import io
import json
import math
import re
import shutil
import subprocess
import sys
import wave
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from apps.factory.captions import Word
from apps.factory.formats import RATE

TONE = "tones"
_WORD = re.compile(r"\S+")
HERE = Path(__file__).parent


NO_VOICE = 3  # the exit code of espeak.py


class SpeechFailed(Exception):
    """The synthesiser failed."""


class VoiceUnknown(SpeechFailed):
    """The synthesiser has no such voice."""


@dataclass(frozen=True, kw_only=True)
class Speech:
    """Mono samples of 16 bits at RATE samples per second, and the time of each word."""

    samples: bytes
    words: tuple[Word, ...]
    synthesiser: str

    @property
    def milliseconds(self) -> int:
        return len(self.samples) // 2 * 1000 // RATE


def speak(text: str, *, voice: str, pace: int) -> Speech:
    """Speak a text with the best synthesiser that is installed."""
    match synthesiser().partition(" ")[0]:
        case "espeak-ng":
            samples, word_starts = (
                _library(text, voice, pace) if _loader() is not None else (_program(text, voice, pace), {})
            )
        case _:
            return _tones(text, pace)
    return Speech(samples=samples, words=_words(text, word_starts, len(samples) // 2), synthesiser=synthesiser())


@cache
def check(voice: str) -> None:
    """Raise VoiceUnknown if the synthesiser does not have this voice."""
    speak("a", voice=voice, pace=400)


@cache
def synthesiser() -> str:
    """Return the name and the version of the synthesiser, which every sound track depends on."""
    if (loader := _loader()) is not None:
        about = ctypes.CDLL(loader.get_library_path()).espeak_Info
        about.restype = ctypes.c_char_p
        return f"espeak-ng {about(None).decode()}"
    if (program := shutil.which("espeak-ng")) is not None:
        output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        version = re.search(r"\d+(\.\d+)+", output)
        return f"espeak-ng {version[0] if version else '?'} (program)"
    return TONE


@cache
def _loader() -> Any:
    try:
        loader = importlib.import_module("espeakng_loader")
        ctypes.CDLL(loader.get_library_path())
    except (ImportError, OSError):
        return None
    return loader


def _library(text: str, voice: str, pace: int) -> tuple[bytes, dict[int, int]]:
    """Return the samples, and the start of words in milliseconds by their position in the text."""
    output = _run([sys.executable, str(HERE / "espeak.py"), voice, str(pace), str(RATE)], text)
    first_line, _, samples = output.partition(b"\n")
    word_starts: dict[int, int] = {}
    for position, millisecond in json.loads(first_line):
        word_starts.setdefault(position, millisecond)
    return samples, word_starts


def _program(text: str, voice: str, pace: int) -> bytes:
    output = _run(["espeak-ng", "-v", voice, "-s", str(pace), "--stdin", "--stdout"], text)
    # The size in the header of a streamed wave is wrong; the samples are everything after the header.
    return output[output.index(b"data") + 8 :]


def _run(command: Sequence[str], text: str) -> bytes:
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        unknown = done.returncode == NO_VOICE or b"voice does not exist" in done.stderr  # library; program
        failure = VoiceUnknown if unknown else SpeechFailed
        raise failure(f"espeak-ng: {done.stderr.decode('utf-8', 'replace').strip()[-300:]}")
    return done.stdout


def _words(text: str, word_starts: dict[int, int], samples: int) -> tuple[Word, ...]:
    """Return each word with its time. Words without a known start share the time up to the next known one."""
    spans = [match.span() for match in _WORD.finditer(text)]
    total = samples * 1000 // RATE
    known: list[int | None] = [
        next((word_starts[position] for position in range(*span) if position in word_starts), None) for span in spans
    ]
    if known:
        known[0] = 0
    ends = [*known[1:], total]
    times: list[int] = []
    while len(times) < len(spans):
        first = len(times)
        last = next(number for number in range(first, len(ends)) if ends[number] is not None)
        start, end = max(known[first] or 0, times[-1] if times else 0), ends[last] or 0
        times += _spread(start, max(start, end), [span[1] - span[0] for span in spans[first : last + 1]])
    return tuple(
        Word(text[span[0] : span[1]], start, end)
        for span, start, end in zip(spans, times, [*times[1:], total], strict=True)
    )


def _spread(start: int, end: int, lengths: Sequence[int]) -> list[int]:
    """Return the starts of consecutive words between two times, in proportion to their lengths."""
    total, before, times = sum(lengths), 0, []
    for length in lengths:
        times.append(start + (end - start) * before // total)
        before += length
    return times


def _tones(text: str, pace: int) -> Speech:
    """Return a short tone for each word, so that the track has about the right length without a synthesiser."""
    samples, words = array("h"), []
    for match in _WORD.finditer(text):
        length = max(RATE * 60 // pace * (2 + len(match[0])) // 8, RATE // 10)
        pitch, start = 660 - 20 * min(len(match[0]), 16), len(samples)
        loud = length * 7 // 10
        fade = RATE // 100
        for number in range(length):
            strength = min(number, max(loud - number, 0), fade) / fade
            samples.append(round(7000 * strength * math.sin(2 * math.pi * pitch * number / RATE)))
        words.append(Word(match[0], start * 1000 // RATE, len(samples) * 1000 // RATE))
    return Speech(samples=_little_endian(samples), words=tuple(words), synthesiser=TONE)


def _little_endian(samples: array[int]) -> bytes:
    """Return samples in the byte order of a wave file, on any machine."""
    return b"".join(value.to_bytes(2, "little", signed=True) for value in samples)


def as_wave(samples: bytes) -> bytes:
    """Return samples as a wave file."""
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples)
    return written.getvalue()


def from_wave(content: bytes) -> bytes:
    """Return the samples of a wave file."""
    with wave.open(io.BytesIO(content), "rb") as file:
        return file.readframes(file.getnframes())
