"""Statistics: count what ended, a while after it did, and sample once a minute how much waits and runs.

The count looks when something has ended here and its time has come, and once a minute for what others ended (a command
that cancels). An idle worker therefore asks nothing more than its tick does, but for one look a minute.
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
"""Seconds between two looks of a busy process, so that its minute is not written anew at every tick."""
HASTE = 0.2
"""Seconds of one tick that a backlog may take."""
SETTLING = 5.0
"""Seconds before the first sample, so that a worker starts its runs first."""


class Rollup:
    """One process's share of the counting."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._ended = clock.elapsed() - LAG
        self.task = PeriodicTask("statistics", NET, self._count, clock=clock, first_after=SPACING)

    def ended(self) -> None:
        """Something has ended in this process."""
        self._ended = self._clock.elapsed()
        self.task.hasten(LAG + SPACING)

    def _count(self) -> float:
        """Count what can be counted, for a short while; go on at once if there is more, soon if more will come."""
        began = self._clock.elapsed()
        while self.count_slice():
            if self._clock.elapsed() - began > HASTE:
                return 0
        return SPACING if self._ended > began - LAG else NET.total_seconds()

    def count_slice(self) -> bool:
        """Count one slice; whether there is more at once."""
        since = self._store.read(rollups.mark)
        if since is None:
            self._store.do(rollups.begin)
            return True
        piece = self._store.read(lambda tx: rollups.read(tx, since))
        # Where nothing ended the mark stays, so that nothing is written.
        if piece is None or not piece.rows:
            return False
        self._store.do(lambda tx: rollups.write(tx, piece))
        return piece.cut


def gauge_task(store: Store, clock: Clock) -> PeriodicTask:
    """One process's share of the samples."""
    return PeriodicTask("samples", gauges.MINUTE, lambda: _sample(store), clock=clock, first_after=SETTLING)


def _sample(store: Store) -> None:
    """Take this minute's sample, if no other process has."""
    sample = store.read(gauges.look)
    if sample is not None:
        store.do(lambda tx: gauges.take(tx, sample))
