"""Lookups: whose digest is this? Remembered for a few seconds, so that a page's many requests ask the database once.

A site may have a token of its own, which is in no database: the `token` setting. It is looked up like all others.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from holdfast import tokens
from holdfast.values.tokens import Pass

if TYPE_CHECKING:
    from holdfast.app import Holdfast

ADMIN = "admin"  # the name of whoever brings the site's own token
LASTS = 3.0  # seconds until a pass that was taken back is known to be
REMEMBERED = 10_000


class Lookups:
    def __init__(self, hf: Holdfast, *, token: str | None) -> None:
        self._hf = hf
        self._fixed: dict[str, Pass] = {}
        if token is not None:
            self.fix(token)
        self._lock = threading.Lock()
        self._found: OrderedDict[str, tuple[Pass | None, float]] = OrderedDict()

    @property
    def fixed(self) -> str | None:
        """The digest of the site's own token, if it has one."""
        return next(iter(self._fixed), None)

    def fix(self, token: str) -> None:
        """Make this the site's own token, instead of any before it; its bearer is an admin."""
        made_at = self._hf.clock.now()
        self._fixed = {
            tokens.digest(token): Pass(name=ADMIN, role="admin", kind="token", made_at=made_at, expires_at=None)
        }

    def find(self, digest: str) -> Pass | None:
        """The pass of this digest, if there is a good one."""
        if digest in self._fixed:
            return self._fixed[digest]
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
        """Whether the database had this pass when it was last asked, as far as is remembered."""
        with self._lock:
            return self._found.get(digest, (None, 0.0))[0] is not None

    def forget(self, digest: str) -> None:
        with self._lock:
            self._found.pop(digest, None)
