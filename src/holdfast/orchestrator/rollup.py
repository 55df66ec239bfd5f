"""Tally: counts what ended, a while after it did, in small pieces.

It looks when something has ended here and its time has come, and once a minute for what others ended (a command that
cancels). An idle worker therefore asks nothing more than its tick does, but for one look a minute.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from holdfast.statistics import rollups
from holdfast.store.store import Store
from holdfast.support.clock import Clock
from holdfast.support.errors import HoldfastError

log = logging.getLogger("holdfast.orchestrator")

LAG = rollups.LAG.total_seconds()
NET = timedelta(minutes=1).total_seconds()
SPACING = 5.0
"""Seconds between two looks of a busy process, so that its minute is not written anew at every tick."""
HASTE = 0.2
"""Seconds of one tick that a backlog may take."""


class RollupTask:
    """One process's share of the counting."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._ended = clock.elapsed() - LAG
        self._next = clock.elapsed() + SPACING

    def ended(self) -> None:
        """Something has ended in this process."""
        self._ended = self._clock.elapsed()
        self._next = min(self._next, self._ended + LAG + SPACING)

    def tick(self) -> None:
        """Count what can be counted, if it is time for it."""
        began = self._clock.elapsed()
        if began < self._next:
            return
        self._next = began + NET
        try:
            while more := self.piece():
                if self._clock.elapsed() - began > HASTE:
                    break
        except HoldfastError as error:
            log.warning("statistics: %s; trying again in a minute", error)
            return
        if more:
            self._next = began
        elif self._ended > began - LAG:
            self._next = began + SPACING

    def piece(self) -> bool:
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
