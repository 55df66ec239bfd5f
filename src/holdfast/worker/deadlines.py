"""Deadlines: stop runs that reach their deadline or are about to lose their lease, and check the event loop.

It needs no database, so it works during an outage.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

from holdfast.support.clock import Clock
from holdfast.worker.event_loop import Loops
from holdfast.worker.in_flight import InFlight, RunInFlight

log = logging.getLogger("holdfast.worker")

IDLE = 1.0


class Deadlines:
    def __init__(
        self,
        in_flight: InFlight,
        clock: Clock,
        *,
        lease: timedelta,
        on_stall: Callable[[], None] = lambda: None,
        on_unsafe: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """`on_stall` is called after this process could not run for a while; it should renew the leases at once.

        `on_unsafe` is called when another worker may soon take the lease of a function that can't be stopped.
        """
        self._in_flight, self._clock, self._on_stall, self._on_unsafe = in_flight, clock, on_stall, on_unsafe
        # Work must stop before its lease expires; a tenth of the lease is reserved for that.
        self._margin = lease.total_seconds() / 10
        self._idle = min(IDLE, lease.total_seconds() / 12)
        self._due_at = clock.elapsed() + self._idle
        self._check_leases_from = 0.0
        self.loops: Loops | None = None
        self._changed = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="holdfast-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._changed.set()
        self._thread.join(timeout=5)

    def recheck(self) -> None:
        """Check now, because a run with a near deadline has started."""
        self._changed.set()

    def check(self) -> float:
        """Stop the runs that must stop. Return the seconds until the next check."""
        now = self._clock.elapsed()
        late = max(0.0, now - self._due_at)
        self._notice_stall(now, late)
        self._in_flight.guardian.awake(now)
        next_at = now + self._idle
        for running in self._in_flight.all():
            if running.ended or running.stopped is not None:
                continue
            if running.deadline is not None and now >= running.deadline:
                running.stop("timeout", running.claimed.policy.timed_out)
            elif now >= self._check_leases_from and self.too_late(running):
                if running.stop("lost", "the lease could not be renewed in time"):
                    log.warning("run %s: lease not renewed in time, stopping its work", running.lease.run_id)
            else:
                next_at = min(next_at, self._next(running))
        if self.loops is not None:
            next_at = min(next_at, self.loops.check(now, late=late))
        if now >= (unsafe_at := self._in_flight.guardian.unsafe_at(margin=self._margin / 2)):
            self._on_unsafe("leases could not be renewed in time, and a function in a thread did not stop")
        else:
            next_at = min(next_at, unsafe_at)  # check in time: soon after `unsafe_at`, the guardian kills this process
        self._due_at = max(now + 0.001, next_at)
        return self._due_at - now

    def _notice_stall(self, now: float, late: float) -> None:
        """Notice that this process could not run, for example because a function held the interpreter lock.

        Our leases may have expired without another worker taking them, so let the heartbeat check them first.
        """
        if late < self._margin:
            return
        log.warning("this process was stalled for %.1f s; a function may have held the interpreter lock", late)
        self._check_leases_from = now + self._margin
        self._on_stall()

    def too_late(self, running: RunInFlight) -> bool:
        """Whether the lease may expire before the work could be stopped."""
        renewed_until = max(running.lease_until, min(self._in_flight.guardian.renewed_until, running.last))
        return self._clock.elapsed() >= renewed_until - self._margin

    def _next(self, running: RunInFlight) -> float:
        lease_end = max(running.lease_until - self._margin, self._check_leases_from)
        return lease_end if running.deadline is None else min(lease_end, running.deadline)

    def _run(self) -> None:
        while not self._stopping:
            self._changed.wait(self.check())
            self._changed.clear()
