"""Tally: counts what ended, a while after it did, in small pieces.

It looks when something has ended here and its time has come, and once a minute for what others ended (a command that
cancels). An idle worker therefore asks nothing more than its tick does, but for one look a minute.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from holdfast import tallies
from holdfast.clock import Clock
from holdfast.errors import HoldfastError
from holdfast.store.store import Store

log = logging.getLogger("holdfast.orchestrator")

LAG = tallies.LAG.total_seconds()
NET = timedelta(minutes=1).total_seconds()
SPACING = 5.0
"""Seconds between two looks of a busy process, so that its minute is not written anew at every tick."""
HASTE = 0.2
"""Seconds of one tick that a backlog may take."""


class Tallier:
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
        since = self._store.read(tallies.mark)
        if since is None:
            self._store.do(tallies.begin)
            return True
        piece = self._store.read(lambda tx: tallies.read(tx, since))
        # Where nothing ended the mark stays, so that nothing is written.
        if piece is None or not piece.rows:
            return False
        self._store.do(lambda tx: tallies.write(tx, piece))
        return piece.cut
