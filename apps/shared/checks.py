"""Checks: helpers for the checks that `./run --check` makes of an application, over HTTP like any other client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

T = TypeVar("T")

PAUSE = 0.25


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The result of one check. `what` states what should be true; `fault` says what is wrong, or is None."""

    what: str
    fault: str | None = None


class NotInTime(Exception):
    """An expected change did not happen before the deadline of the checks."""


class CheckClient:
    """A client for the application's own site, or for the system's site if the application has none.

    `http` sends the token with each request. `within` is how many seconds all checks of one application may take
    together. While `until` waits, it calls `meanwhile` before each pause.
    """

    def __init__(self, url: str, *, token: str, within: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=10)
        self._deadline, self._meanwhile = time.monotonic() + within, meanwhile

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON at a path."""
        response = self.http.get(path, params=query)
        response.raise_for_status()
        return response.json()

    def until(self, look: Callable[[], T | None], what: str) -> T:
        """Call `look` until it returns a value, and return that; raise NotInTime at the deadline."""
        while (value := look()) is None:
            if time.monotonic() > self._deadline:
                raise NotInTime(what)
            self._meanwhile()
            time.sleep(PAUSE)
        return value

    def close(self) -> None:
        self.http.close()


def difference(actual: object, expected: object) -> str | None:
    """Describe the difference between two values, or return None if they are equal."""
    return None if actual == expected else f"{actual!r} instead of {expected!r}"


Check = Callable[[CheckClient], Iterator[Checked]]
