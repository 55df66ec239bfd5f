"""Watch: stops work whose time is up, or whose lease someone else could take away soon, and sees that the event loop
answers. It asks no database."""

from __future__ import annotations

import logging
import math
import threading
from datetime import timedelta

from holdfast.clock import Clock
from holdfast.worker.loops import Loops
from holdfast.worker.running import Hand, Running

log = logging.getLogger("holdfast.worker")

IDLE = 1.0


class Watch:
    def __init__(self, hand: Hand, clock: Clock, *, lease: timedelta) -> None:
        self._hand, self._clock = hand, clock
        # The work must be gone before the lease is: a tenth of it is for stopping.
        self._margin = lease.total_seconds() / 10
        self.loops: Loops | None = None
        self._due_at = math.inf
        self._changed = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="holdfast-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._changed.set()
        self._thread.join(timeout=5)

    def look(self) -> None:
        """A run with an earlier end has come in."""
        self._changed.set()

    def check(self) -> float:
        """Stop what must be stopped; how many seconds until the next look."""
        now = self._clock.elapsed()
        late = max(0.0, now - self._due_at)
        next_at = now + IDLE
        for running in self._hand.all():
            if running.ended or running.stopped is not None:
                continue
            if running.deadline is not None and now >= running.deadline:
                running.stop("timeout", f"over its window of {running.claim.policy.timeout}")
            elif self.too_late(running):
                if running.stop("lost", "its lease could not be renewed in time"):
                    log.warning("run %s: lease not renewed in time, the work is stopped", running.lease.run_id)
            else:
                next_at = min(next_at, self._next(running))
        if self.loops is not None:
            next_at = min(next_at, self.loops.check(now, late=late))
        self._due_at = max(now + 0.001, next_at)
        return self._due_at - now

    def too_late(self, running: Running) -> bool:
        """Whether the lease may run out before the work could be stopped."""
        return self._clock.elapsed() >= running.lease_until - self._margin

    def _next(self, running: Running) -> float:
        lease_end = running.lease_until - self._margin
        return lease_end if running.deadline is None else min(lease_end, running.deadline)

    def _run(self) -> None:
        while not self._stopping:
            self._changed.wait(self.check())
            self._changed.clear()
