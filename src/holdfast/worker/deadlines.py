"""Deadlines: stop work whose time is up, or whose lease someone else could take away soon, and see that the event loop
answers, without asking a database."""

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
        on_standstill: Callable[[], None] = lambda: None,
        on_unsafe: Callable[[str], None] = lambda why: None,
    ) -> None:
        """`on_standstill`: this process could not run for a while, and its leases should be renewed at once.

        `on_unsafe`: a lease can be taken away soon from a function that nobody can stop.
        """
        self._in_flight, self._clock, self._on_standstill, self._on_unsafe = in_flight, clock, on_standstill, on_unsafe
        # The work must be gone before the lease is: a tenth of it is for stopping.
        self._margin = lease.total_seconds() / 10
        self._idle = min(IDLE, lease.total_seconds() / 12)
        self._due_at = clock.elapsed() + self._idle
        self._judge_leases_at = 0.0
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

    def look(self) -> None:
        """A run with an earlier end has come in."""
        self._changed.set()

    def check(self) -> float:
        """Stop what must be stopped; how many seconds until the next look."""
        now = self._clock.elapsed()
        late = max(0.0, now - self._due_at)
        self._notice_standstill(now, late)
        self._in_flight.guardian.awake(now)
        next_at = now + self._idle
        for running in self._in_flight.all():
            if running.ended or running.stopped is not None:
                continue
            if running.deadline is not None and now >= running.deadline:
                running.stop("timeout", f"over its window of {running.claim.policy.timeout}")
            elif now >= self._judge_leases_at and self.too_late(running):
                if running.stop("lost", "its lease could not be renewed in time"):
                    log.warning("run %s: lease not renewed in time, the work is stopped", running.lease.run_id)
            else:
                next_at = min(next_at, self._next(running))
        if self.loops is not None:
            next_at = min(next_at, self.loops.check(now, late=late))
        if now >= (unsafe_at := self._in_flight.guardian.unsafe_at(margin=self._margin / 2)):
            self._on_unsafe("its leases could not be renewed in time, and a function in a thread did not stop")
        else:
            next_at = min(next_at, unsafe_at)  # to the moment: soon after it the guardian would kill this process
        self._due_at = max(now + 0.001, next_at)
        return self._due_at - now

    def _notice_standstill(self, now: float, late: float) -> None:
        """A function that held the interpreter lock, or a stopped process, may have let our leases run out. That does
        not make them someone else's: the heartbeat asks first."""
        if late < self._margin:
            return
        log.warning(
            "this process could not run its own code for %.1f s; a function may have held the interpreter lock", late
        )
        self._judge_leases_at = now + self._margin
        self._on_standstill()

    def too_late(self, running: RunInFlight) -> bool:
        """Whether the lease may run out before the work could be stopped."""
        renewed_until = max(running.lease_until, min(self._in_flight.guardian.renewed_until, running.last))
        return self._clock.elapsed() >= renewed_until - self._margin

    def _next(self, running: RunInFlight) -> float:
        lease_end = max(running.lease_until - self._margin, self._judge_leases_at)
        return lease_end if running.deadline is None else min(lease_end, running.deadline)

    def _run(self) -> None:
        while not self._stopping:
            self._changed.wait(self.check())
            self._changed.clear()
