"""Statistics: writes rollups of finished runs after a short delay, and samples the gauges once a minute.

Rollups are written soon after a run has ended in this process, and once a minute for runs that other processes ended
(such as a command that cancels). So an idle worker adds only one query a minute to its polling.
"""

from __future__ import annotations

from datetime import timedelta

from holdfast.orchestrator.periodic import PeriodicTask
from holdfast.statistics import gauges, rollups
from holdfast.store.store import Store
from holdfast.support.clock import Clock

LAG = rollups.LAG.total_seconds()
NET = timedelta(minutes=1)
SPACING = 5.0
"""Seconds between two rollups of a busy process, so that it does not rewrite the current minute at every tick."""
TIME_PER_TICK = 0.2
"""Seconds of one tick that catching up may take."""
FIRST_SAMPLE_AFTER = 5.0
"""Seconds before the first sample, so that a worker starts its runs first."""


class Rollup:
    """The rollups that one process writes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._ended = clock.elapsed() - LAG
        self.task = PeriodicTask("statistics", NET, self._count, clock=clock, first_after=SPACING)

    def ended(self) -> None:
        """Note that a run has ended in this process."""
        self._ended = self._clock.elapsed()
        self.task.hasten(LAG + SPACING)

    def _count(self) -> float:
        """Count finished runs for at most TIME_PER_TICK. Return the seconds until the next call."""
        began = self._clock.elapsed()
        while self.count_slice():
            if self._clock.elapsed() - began > TIME_PER_TICK:
                return 0
        return SPACING if self._ended > began - LAG else NET.total_seconds()

    def count_slice(self) -> bool:
        """Count one slice of finished runs; True if there are more."""
        since = self._store.read(rollups.mark)
        if since is None:
            self._store.do(rollups.begin)
            return True
        piece = self._store.read(lambda tx: rollups.read(tx, since))
        # If no run ended, leave the watermark as it is, so that nothing is written.
        if piece is None or not piece.rows:
            return False
        self._store.do(lambda tx: rollups.write(tx, piece))
        return piece.cut


def gauge_task(store: Store, clock: Clock) -> PeriodicTask:
    """Return the task that samples the gauges."""
    return PeriodicTask("gauges", gauges.MINUTE, lambda: _sample(store), clock=clock, first_after=FIRST_SAMPLE_AFTER)


def _sample(store: Store) -> None:
    """Store this minute's sample, unless another process has done so."""
    sample = store.read(gauges.look)
    if sample is not None:
        store.do(lambda tx: gauges.take(tx, sample))
