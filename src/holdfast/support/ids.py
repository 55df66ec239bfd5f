"""Ids and random numbers: the only module that uses randomness, so that a seed makes a test repeatable.

An id has 26 characters and sorts by the time it was made: ten for the millisecond, and sixteen that are random
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
        self._random = random.Random(self._seed)  # without a seed, seeded by the operating system
        self._last = 0

    def new(self, now: datetime, *, after: str | None = None) -> str:
        """Return a new id that sorts after `after` and after every id that this object has made."""
        milliseconds = int((now - EPOCH).total_seconds() * 1000)
        with self._lock:
            if milliseconds > self._last >> 80:
                # The top bit stays 0, so that counting up never reaches the next millisecond.
                self._last = milliseconds << 80 | self._random.getrandbits(79)
            else:
                self._last += 1
            made = _text(self._last)
            if after is not None and made <= after and (least := _number(after)):
                # Skip a random distance: other processes may make an id after the same one at the same time.
                self._last = least + 1 + self._random.getrandbits(40)
                made = _text(self._last)
        return made

    @staticmethod
    def since(at: datetime) -> str:
        """Return a text that sorts before every id made at that instant or later, and after all earlier ids."""
        milliseconds = max(0, int((at - EPOCH).total_seconds() * 1000))
        return "".join(_PAIRS[milliseconds >> shift & 1023] for shift in range(40, -1, -10))

    @staticmethod
    def created_at(given: str) -> datetime | None:
        """Return when an id was made; None if the text is not an id."""
        number = _number(given)
        return EPOCH + timedelta(milliseconds=number >> 80) if number else None

    def fraction(self) -> float:
        """Return a random number between 0 and 1, for jitter."""
        with self._lock:
            return self._random.random()

    def holder(self, name: str) -> str:
        """Return a globally unique worker name: host, pid, the given name and a random tail."""
        import socket

        with self._lock:
            tail = self._random.getrandbits(40)
        return f"{socket.gethostname()[:60]}:{os.getpid()}:{name[:40]}:{tail:010x}"

    @staticmethod
    def name_of(holder: str) -> str:
        """Return the given name inside a worker name that `holder` made."""
        return holder.rpartition(":")[0].split(":", 2)[-1]

    def token(self) -> str:
        with self._lock:
            return f"{self._random.getrandbits(64):016x}"

    def secret(self) -> str:
        """Return 256 secret bits as URL-safe text. Without a seed they come from the operating system."""
        with self._lock:
            drawn = os.urandom(32) if self._seed is None else self._random.randbytes(32)
        return base64.urlsafe_b64encode(drawn).decode().rstrip("=")


def _text(number: int) -> str:
    return "".join(_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10))


def _number(given: str) -> int:
    """Return an id as a number; 0 if it is not an id or its time is out of range."""
    value = 0
    for character in given:
        if (digit := _ALPHABET.find(character)) < 0:
            return 0
        value = value << 5 | digit
    return value if len(given) == LENGTH and value < _LATEST << 80 else 0
