"""Host throttle: one request at a time to each host, and a pause between two."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from apps.dailybrief.feeds.stopped import SLICE, Stopped


class HostThrottle:
    """Who is being asked. A host is a name: who has many names is asked under each."""

    def __init__(self, *, pause: timedelta, stop: threading.Event) -> None:
        self._pause = pause.total_seconds()
        self._stop = stop
        self._changed = threading.Condition()
        self._asked: set[str] = set()
        self._free_at: dict[str, float] = {}

    @contextmanager
    def turn(self, host: str) -> Iterator[None]:
        """Wait for our turn at a host and hold it; or Stopped."""
        with self._changed:
            while (seconds := self._wait_for(host)) > 0:
                if self._stop.is_set():
                    raise Stopped
                self._changed.wait(min(seconds, SLICE))
            self._asked.add(host)
        try:
            yield
        finally:
            with self._changed:
                self._asked.remove(host)
                self._free_at[host] = time.monotonic() + self._pause
                self._changed.notify_all()

    def _wait_for(self, host: str) -> float:
        return SLICE if host in self._asked else self._free_at.get(host, 0.0) - time.monotonic()
