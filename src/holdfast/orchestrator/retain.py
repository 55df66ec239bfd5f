"""Retain: removes what has ended long ago, a bounded transaction at a time, now and then.

Every worker does it, each at its own moment of the hour; two at once do no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta

from holdfast import clearing, codec, retention
from holdfast.clock import Clock
from holdfast.depots.base import Depot
from holdfast.errors import HoldfastError
from holdfast.outcomes import State
from holdfast.retention import Cursor, Removed
from holdfast.settings import Settings
from holdfast.store.store import Store

log = logging.getLogger("holdfast.orchestrator")

EVERY = timedelta(hours=1)
ROUND = timedelta(days=1)


class Retainer:
    """A worker's own pass through what has ended: at most one step a tick, so that nothing else waits for it.

    Its cursors stay where they are between passes, and only what has come due since is read; once a day it begins at
    the beginning, for the sake of what was spared then.
    """

    def __init__(
        self, store: Store, settings: Settings, clock: Clock, *, depot: Callable[[], Depot], seed: str
    ) -> None:
        self._store, self._settings, self._clock, self._depot = store, settings, clock, depot
        self._next = clock.elapsed() + EVERY.total_seconds() * int(codec.digest(seed)[:4], 16) / 0x10000
        self._round_ends = clock.elapsed()
        self._cursors: dict[State, Cursor] = {}
        self._pass: Iterator[Removed] | None = None
        self._removed = Removed()

    def tick(self) -> None:
        """The next step, if it is time for one."""
        if self._clock.elapsed() < self._next:
            return
        self._next = self._clock.elapsed() + self._settings.tick.total_seconds()
        try:
            self._pass = self._pass or self._begin()
            self._removed += next(self._pass)
        except StopIteration:
            self._end()
        except HoldfastError as error:
            log.warning("retention: %s; trying again in %s", error, EVERY)
            self._cursors.clear()
            self._end()

    def _begin(self) -> Iterator[Removed]:
        if self._clock.elapsed() >= self._round_ends:
            self._round_ends = self._clock.elapsed() + ROUND.total_seconds()
            self._cursors = {}
        self._removed = Removed()
        limits = retention.limits(self._settings, self._clock.now())
        return clearing.steps(self._store, self._depot(), limits, cursors=self._cursors)

    def _end(self) -> None:
        self._pass = None
        self._next = self._clock.elapsed() + EVERY.total_seconds()
        if self._removed != Removed():
            log.info("retention: removed %s", self._removed)
