"""Host throttle: allows only one request at a time to each host, with a pause between requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from apps.dailybrief.feeds.stopped import CHECK_INTERVAL, Stopped


class HostThrottle:
    """Records which hosts have a request. Two names of one server count as two hosts."""

    def __init__(self, *, pause: timedelta, stop: threading.Event) -> None:
        self._pause = pause.total_seconds()
        self._stop = stop
        self._changed = threading.Condition()
        self._busy: set[str] = set()
        self._free_at: dict[str, float] = {}

    @contextmanager
    def turn(self, host: str) -> Iterator[None]:
        """Wait until no other request to the host runs, then reserve it; raise Stopped if `stop` is set."""
        with self._changed:
            while (seconds := self._wait_for(host)) > 0:
                if self._stop.is_set():
                    raise Stopped
                self._changed.wait(min(seconds, CHECK_INTERVAL))
            self._busy.add(host)
        try:
            yield
        finally:
            with self._changed:
                self._busy.remove(host)
                self._free_at[host] = time.monotonic() + self._pause
                self._changed.notify_all()

    def _wait_for(self, host: str) -> float:
        return CHECK_INTERVAL if host in self._busy else self._free_at.get(host, 0.0) - time.monotonic()
