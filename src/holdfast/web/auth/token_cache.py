"""Lookups: whose digest is this? Remembered for a few seconds, so that a page's many requests ask the database once."""

from __future__ import annotations

import threading
from collections import OrderedDict

from holdfast import tokens
from holdfast.engine import Holdfast
from holdfast.values.tokens import Pass

LASTS = 3.0  # seconds until a pass that was taken back is known to be
REMEMBERED = 10_000


class Lookups:
    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self._lock = threading.Lock()
        self._found: OrderedDict[str, tuple[Pass | None, float]] = OrderedDict()

    def find(self, digest: str) -> Pass | None:
        """The pass of this digest, if there is a good one."""
        now = self._hf.clock.elapsed()
        with self._lock:
            found, until = self._found.get(digest, (None, 0.0))
        if now >= until:
            found = self._hf.read(lambda tx: tokens.find_token(tx, digest))
            with self._lock:
                self._found[digest] = found, now + LASTS
                self._found.move_to_end(digest)
                while len(self._found) > REMEMBERED:
                    self._found.popitem(last=False)
        if found is None or (found.expires_at is not None and found.expires_at <= self._hf.clock.now()):
            return None
        return found

    def was_good(self, digest: str) -> bool:
        """Whether this was a pass when it was last looked up, as far as is remembered."""
        with self._lock:
            return self._found.get(digest, (None, 0.0))[0] is not None

    def forget(self, digest: str) -> None:
        with self._lock:
            self._found.pop(digest, None)
