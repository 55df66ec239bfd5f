"""Outside: an application as someone sees it who has nothing but its address and a pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

T = TypeVar("T")

PAUSE = 0.25


class NotInTime(Exception):
    """What was waited for did not come."""


class Outside:
    """The system's API, and the application's own site if it has one; both need the pass that every request carries.

    `until` waits for something, at most until the time is over that all checks of an application have together, and
    calls `meanwhile` again and again.
    """

    def __init__(
        self, site: str, own: str, *, token: str, within: float, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self.system = httpx.Client(base_url=site, headers=headers, timeout=10)
        self.own = httpx.Client(base_url=own, headers=headers, timeout=10)
        self._over_at, self._meanwhile = time.monotonic() + within, meanwhile

    def get(self, path: str, **query: Any) -> Any:
        """The JSON that a path of the system's API answers with."""
        response = self.system.get(f"/api{path}", params=query)
        response.raise_for_status()
        return response.json()

    def runs(self, **query: Any) -> list[dict[str, Any]]:
        """The newest hundred runs that fit."""
        found: list[dict[str, Any]] = self.get("/runs", **query, limit=100)["items"]
        return found

    def until(self, look: Callable[[], T | None], what: str) -> T:
        """What `look` gives, as soon as it gives something; NotInTime if the time is over first."""
        while (found := look()) is None:
            if time.monotonic() > self._over_at:
                raise NotInTime(what)
            self._meanwhile()
            time.sleep(PAUSE)
        return found

    def close(self) -> None:
        self.system.close()
        self.own.close()
