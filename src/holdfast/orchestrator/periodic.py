"""Periodic: calls a function at regular intervals, between two ticks of the orchestrator."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from holdfast.support.clock import Clock
from holdfast.support.errors import HoldfastError

log = logging.getLogger("holdfast.orchestrator")


class PeriodicTask:
    """A task that one process repeats at a fixed interval.

    The function returns the number of seconds until its next call, or None for its usual time. If it raises a
    HoldfastError, the error is logged, and the function is called again at its usual time.
    """

    def __init__(
        self, name: str, interval: timedelta, function: Callable[[], float | None], *, clock: Clock, first_after: float
    ) -> None:
        self._name, self._interval, self._function, self._clock = name, interval, function, clock
        self._next = clock.elapsed() + first_after

    def tick(self) -> None:
        """Call the function if it is due."""
        now, every = self._clock.elapsed(), self._interval.total_seconds()
        late = now - self._next
        if late < 0:
            return
        self._next += every * (1 + late // every)
        try:
            wait = self._function()
        except HoldfastError as error:
            log.warning("%s: %s; retrying within %s", self._name, error, self._interval)
            return
        if wait is not None:
            self._next = now + wait

    def hasten(self, seconds: float) -> None:
        """Call the function in this many seconds at the latest."""
        self._next = min(self._next, self._clock.elapsed() + seconds)
