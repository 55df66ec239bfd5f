"""Ids and chance: the only file that is random, so that a seed replays anything.

An id is 26 characters that sort by the time they were made: ten for the millisecond, sixteen that are random
and count up within one millisecond. `order by id` is therefore "oldest first", the same on every database.
"""

from __future__ import annotations

import base64
import os
import random
import threading
from datetime import UTC, datetime, timedelta

from holdfast.support.atfork import on_fork
from holdfast.support.clock import EPOCH

LENGTH = 26

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_LATEST = int((datetime.max.replace(tzinfo=UTC) - EPOCH).total_seconds()) * 1000


class Ids:
    """Makes ids and random numbers; with a seed, always the same ones."""

    def __init__(self, seed: int | None = None) -> None:
        self._seed = seed
        self._lock = threading.Lock()
        self._start()
        if seed is None:
            on_fork(self._start)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._random = random.Random(self._seed)  # without a seed: from the operating system's
        self._last = 0

    def new(self, now: datetime, *, after: str | None = None) -> str:
        """A new id, later in order than `after` and every id that this object made before."""
        milliseconds = int((now - EPOCH).total_seconds() * 1000)
        with self._lock:
            if milliseconds > self._last >> 80:
                # The top bit stays free, so that counting up never runs into the next millisecond.
                self._last = milliseconds << 80 | self._random.getrandbits(79)
            else:
                self._last += 1
            made = _text(self._last)
            if after is not None and made <= after and (least := _number(after)):
                # Not the very next one: other processes may come after the same id at the same time.
                self._last = least + 1 + self._random.getrandbits(40)
                made = _text(self._last)
        return made

    @staticmethod
    def since(at: datetime) -> str:
        """What sorts before every id that was made at that instant or later, and after all earlier ones."""
        milliseconds = max(0, int((at - EPOCH).total_seconds() * 1000))
        return "".join(_PAIRS[milliseconds >> shift & 1023] for shift in range(40, -1, -10))

    @staticmethod
    def made_at(given: str) -> datetime | None:
        """When an id was made; None for what is none."""
        number = _number(given)
        return EPOCH + timedelta(milliseconds=number >> 80) if number else None

    def fraction(self) -> float:
        """A number between 0 and 1, for jitter."""
        with self._lock:
            return self._random.random()

    def holder(self, name: str) -> str:
        """A name for a worker that no other worker ever had: host, pid, stage and a random tail."""
        import socket

        with self._lock:
            tail = self._random.getrandbits(40)
        return f"{socket.gethostname()[:60]}:{os.getpid()}:{name[:40]}:{tail:010x}"

    @staticmethod
    def name_of(holder: str) -> str:
        """The name in a holder."""
        return holder.rpartition(":")[0].split(":", 2)[-1]

    def token(self) -> str:
        with self._lock:
            return f"{self._random.getrandbits(64):016x}"

    def secret(self) -> str:
        """256 bits that no one can guess, as text that fits in a URL; without a seed the operating system's own."""
        with self._lock:
            drawn = os.urandom(32) if self._seed is None else self._random.randbytes(32)
        return base64.urlsafe_b64encode(drawn).decode().rstrip("=")


def _text(number: int) -> str:
    return "".join(_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10))


def _number(given: str) -> int:
    """What an id counts; 0 for what is none, or is of a time beyond all calendars."""
    value = 0
    for character in given:
        if (digit := _ALPHABET.find(character)) < 0:
            return 0
        value = value << 5 | digit
    return value if len(given) == LENGTH and value < _LATEST << 80 else 0
