"""Checks: what `./run --check` looks at, over HTTP and with a token, as any client of an application would."""

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
    """One thing that was checked; `fault` says what is wrong with it."""

    what: str
    fault: str | None = None


class NotInTime(Exception):
    """What was waited for did not come."""


class CheckClient:
    """The site of an application, or the system's own if the application has none; `http` sends the token.

    `until` waits for something, at most until the time is over that all checks of an application have together, and
    calls `meanwhile` again and again.
    """

    def __init__(self, url: str, *, token: str, within: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=10)
        self._over_at, self._meanwhile = time.monotonic() + within, meanwhile

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at a path."""
        response = self.http.get(path, params=query)
        response.raise_for_status()
        return response.json()

    def until(self, look: Callable[[], T | None], what: str) -> T:
        """What `look` gives, as soon as it gives something; NotInTime if the time is over first."""
        while (found := look()) is None:
            if time.monotonic() > self._over_at:
                raise NotInTime(what)
            self._meanwhile()
            time.sleep(PAUSE)
        return found

    def close(self) -> None:
        self.http.close()


def difference(actual: object, expected: object) -> str | None:
    """What is wrong if the two are not equal."""
    return None if actual == expected else f"{actual!r} instead of {expected!r}"


Check = Callable[[CheckClient], Iterator[Checked]]
