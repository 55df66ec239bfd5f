"""Speech: a text becomes sound, and each word knows when it is spoken.

    espeak-ng, the library     from the wheel `espeakng-loader`: it tells the time of each word
    espeak-ng, the program     where the wheel is not: times are shared out by the letters of the words
    a tone a word              where neither is there; the result says so, and so does the page

The same text gives the same samples: nothing here asks for the time or for chance.
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


NO_VOICE = 3  # what espeak.py ends with


class SpeechFailed(Exception):
    """The synthesiser did not speak."""


class VoiceUnknown(SpeechFailed):
    """The synthesiser has no such voice."""


@dataclass(frozen=True, kw_only=True)
class Speech:
    """Mono samples of 16 bits, RATE of them a second, and when each word is spoken."""

    samples: bytes
    words: tuple[Word, ...]
    synthesiser: str

    @property
    def milliseconds(self) -> int:
        return len(self.samples) // 2 * 1000 // RATE


def speak(text: str, *, voice: str, pace: int) -> Speech:
    """Have a text spoken by the best that is here."""
    match synthesiser().partition(" ")[0]:
        case "espeak-ng":
            samples, begins = (
                _library(text, voice, pace) if _loader() is not None else (_program(text, voice, pace), {})
            )
        case _:
            return _tones(text, pace)
    return Speech(samples=samples, words=_words(text, begins, len(samples) // 2), synthesiser=synthesiser())


@cache
def check(voice: str) -> None:
    """See that a voice is there, or VoiceUnknown."""
    speak("a", voice=voice, pace=400)


@cache
def synthesiser() -> str:
    """Who speaks here, with its version: part of what a sound track depends on."""
    if (loader := _loader()) is not None:
        about = ctypes.CDLL(loader.get_library_path()).espeak_Info
        about.restype = ctypes.c_char_p
        return f"espeak-ng {about(None).decode()}"
    if (program := shutil.which("espeak-ng")) is not None:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"\d+(\.\d+)+", said)
        return f"espeak-ng {found[0] if found else '?'} (program)"
    return TONE


@cache
def _loader() -> Any:
    try:
        found = importlib.import_module("espeakng_loader")
        ctypes.CDLL(found.get_library_path())
    except (ImportError, OSError):
        return None
    return found


def _library(text: str, voice: str, pace: int) -> tuple[bytes, dict[int, int]]:
    """Samples, and for the place of a letter in the text the millisecond at which its word begins."""
    spoken = _run([sys.executable, str(HERE / "espeak.py"), voice, str(pace), str(RATE)], text)
    told, _, samples = spoken.partition(b"\n")
    begins: dict[int, int] = {}
    for letter, millisecond in json.loads(told):
        begins.setdefault(letter, millisecond)
    return samples, begins


def _program(text: str, voice: str, pace: int) -> bytes:
    spoken = _run(["espeak-ng", "-v", voice, "-s", str(pace), "--stdin", "--stdout"], text)
    # A wave whose length is not known says so with a size that it does not have: the rest is sound.
    return spoken[spoken.index(b"data") + 8 :]


def _run(command: Sequence[str], text: str) -> bytes:
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        unknown = done.returncode == NO_VOICE or b"voice does not exist" in done.stderr  # ours; the program's own
        failure = VoiceUnknown if unknown else SpeechFailed
        raise failure(f"espeak-ng: {done.stderr.decode('utf-8', 'replace').strip()[-300:]}")
    return done.stdout


def _words(text: str, begins: dict[int, int], samples: int) -> tuple[Word, ...]:
    """Each word with its time. Those of which nothing was heard share the time up to the next that was."""
    places = [(found.start(), found.end()) for found in _WORD.finditer(text)]
    total = samples * 1000 // RATE
    known: list[int | None] = [
        next((begins[letter] for letter in range(*place) if letter in begins), None) for place in places
    ]
    if known:
        known[0] = 0
    ends = [*known[1:], total]
    times: list[int] = []
    while len(times) < len(places):
        first = len(times)
        last = next(number for number in range(first, len(ends)) if ends[number] is not None)
        begin, end = max(known[first] or 0, times[-1] if times else 0), ends[last] or 0
        times += _shared(begin, max(begin, end), [place[1] - place[0] for place in places[first : last + 1]])
    return tuple(
        Word(text[place[0] : place[1]], begin, end)
        for place, begin, end in zip(places, times, [*times[1:], total], strict=True)
    )


def _shared(begin: int, end: int, letters: Sequence[int]) -> list[int]:
    """When each of some words begins that are spoken one after the other between two times."""
    whole, before, times = sum(letters), 0, []
    for count in letters:
        times.append(begin + (end - begin) * before // whole)
        before += count
    return times


def _tones(text: str, pace: int) -> Speech:
    """A short tone for each word, higher for shorter ones: no speech, but a track of the right length."""
    samples, words = array("h"), []
    for found in _WORD.finditer(text):
        length = max(RATE * 60 // pace * (2 + len(found[0])) // 8, RATE // 10)
        pitch, begins = 660 - 20 * min(len(found[0]), 16), len(samples)
        loud = length * 7 // 10
        fade = RATE // 100
        for number in range(length):
            strength = min(number, max(loud - number, 0), fade) / fade
            samples.append(round(7000 * strength * math.sin(2 * math.pi * pitch * number / RATE)))
        words.append(Word(found[0], begins * 1000 // RATE, len(samples) * 1000 // RATE))
    return Speech(samples=_little(samples), words=tuple(words), synthesiser=TONE)


def _little(samples: array[int]) -> bytes:
    """As a wave has them, whatever this machine does."""
    return b"".join(value.to_bytes(2, "little", signed=True) for value in samples)


def as_wave(samples: bytes) -> bytes:
    """Samples as a file that every player knows."""
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples)
    return written.getvalue()


def from_wave(content: bytes) -> bytes:
    """The samples of such a file."""
    with wave.open(io.BytesIO(content), "rb") as file:
        return file.readframes(file.getnframes())
