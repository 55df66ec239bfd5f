"""Ids and chance: the only file that is random, so that a seed replays anything.

An id is 26 characters that sort by the time they were made: ten for the millisecond, sixteen that are random
and count up within one millisecond. `order by id` is therefore "oldest first", the same on every database.
"""

from __future__ import annotations

import base64
import os
import random
import secrets
import socket
import threading
from datetime import UTC, datetime, timedelta

from holdfast.forks import on_fork

LENGTH = 26

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

    def new(self, now: datetime) -> str:
        """A new id, later in order than every id this object made before."""
        milliseconds = int((now - _EPOCH).total_seconds() * 1000)
        with self._lock:
            if milliseconds > self._last >> 80:
                # The top bit stays free, so that counting up never runs into the next millisecond.
                self._last = milliseconds << 80 | self._random.getrandbits(79)
            else:
                self._last += 1
            value = self._last
        return "".join(_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10))

    @staticmethod
    def since(at: datetime) -> str:
        """What sorts before every id that was made at that instant or later, and after all earlier ones."""
        milliseconds = max(0, int((at - _EPOCH).total_seconds() * 1000))
        return "".join(_PAIRS[milliseconds >> shift & 1023] for shift in range(40, -1, -10))

    @staticmethod
    def made_at(given: str) -> datetime | None:
        """When an id was made; None for what is none."""
        value = 0
        for character in given[:10]:
            if (digit := _ALPHABET.find(character)) < 0:
                return None
            value = value << 5 | digit
        try:
            return _EPOCH + timedelta(milliseconds=value) if len(given) == LENGTH else None
        except OverflowError:
            return None

    def fraction(self) -> float:
        """A number between 0 and 1, for jitter."""
        with self._lock:
            return self._random.random()

    def holder(self, name: str) -> str:
        """A name for a worker that no other worker ever had: host, pid, stage and a random tail."""
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
            drawn = secrets.token_bytes(32) if self._seed is None else self._random.randbytes(32)
        return base64.urlsafe_b64encode(drawn).decode().rstrip("=")
