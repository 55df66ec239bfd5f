"""A cache of token lookups: the many requests of one page read the database only once.

It also holds the site's own token, which is not in the database. It comes from `Site(admin_token=…)`, from the setting
`admin_token` or from `holdfast serve`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from holdfast import tokens
from holdfast.values.tokens import Token

if TYPE_CHECKING:
    from holdfast.app import Holdfast

ADMIN = "admin"  # the user name for the site's own token
LASTS = 3.0  # seconds until a revoked token stops working
REMEMBERED = 10_000


class TokenCache:
    def __init__(self, hf: Holdfast, *, token: str | None) -> None:
        self._hf = hf
        self._fixed: dict[str, Token] = {}
        if token is not None:
            self.fix(token)
        self._lock = threading.Lock()
        self._found: OrderedDict[str, tuple[Token | None, float]] = OrderedDict()

    @property
    def fixed(self) -> str | None:
        """The digest of the site's own token, if it has one."""
        return next(iter(self._fixed), None)

    def fix(self, token: str) -> None:
        """Set the site's own token, which has the role admin; it replaces an earlier one."""
        created_at = self._hf.clock.now()
        self._fixed = {
            tokens.digest(token): Token(name=ADMIN, role="admin", kind="token", created_at=created_at, expires_at=None)
        }

    def find(self, digest: str) -> Token | None:
        """Return the valid token with this digest, or None."""
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
        """Return whether the token was valid at its last lookup, if that is still in the cache."""
        with self._lock:
            return self._found.get(digest, (None, 0.0))[0] is not None

    def forget(self, digest: str) -> None:
        with self._lock:
            self._found.pop(digest, None)
