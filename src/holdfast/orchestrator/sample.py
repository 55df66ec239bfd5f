"""Sample: looks once a minute at how much waits and runs, for the charts."""

from __future__ import annotations

import logging

from holdfast.statistics import gauges
from holdfast.store.store import Store
from holdfast.support.clock import Clock
from holdfast.support.errors import HoldfastError

log = logging.getLogger("holdfast.orchestrator")

EVERY = gauges.MINUTE.total_seconds()
SETTLING = 5.0  # seconds: who has just come has other things to do


class GaugeTask:
    """One process's share of the looking."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._next = clock.elapsed() + SETTLING

    def tick(self) -> None:
        """Take this minute's sample, if it is time and no one has."""
        late = self._clock.elapsed() - self._next
        if late < 0:
            return
        self._next += EVERY * (1 + late // EVERY)  # the same moment of every minute: none is left out
        try:
            sample = self._store.read(gauges.look)
            if sample is not None:
                self._store.do(lambda tx: gauges.take(tx, sample))
        except HoldfastError as error:
            log.warning("samples: %s; trying again in a minute", error)
