"""Running: what this worker has in hand, and how each of it is told to stop."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.clock import Clock
from holdfast.jobs import Job
from holdfast.leases import Claim, Lease
from holdfast.store.transaction import Transaction

Stop = Literal["timeout", "cancel", "lost", "shutdown", "blocked"]
"""Why work has to stop. `blocked`: another run blocks the event loop; this one is released."""


@dataclass(eq=False)
class Running:
    """One claimed run. It ends once: by its work, by its deadline, by a cancel, or by losing its lease."""

    claim: Claim
    job: Job[..., Any]
    lease_until: float
    """On the clock that never stops: after this, someone else may have the run."""
    deadline: float | None
    last: float = math.inf
    """What no renewal goes beyond: the deadline and the time that it takes to kill."""
    stopped: Stop | None = None
    reason: str = ""
    interrupt: Callable[[], None] = lambda: None
    """How to reach the work itself; set by whatever executes it."""
    renewed: Callable[[], None] = lambda: None
    """Called when the lease was extended."""
    finishing: bool = False
    """Whether its end was written in a transaction of the job's own, of which only the job knows what became of it."""
    ended: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def lease(self) -> Lease:
        return self.claim.lease

    def extend(self, until: float) -> None:
        """The lease was renewed, or is known to be ours until then."""
        self.lease_until = min(until, self.last)
        self.renewed()

    def stop(self, stop: Stop, reason: str) -> bool:
        """Tell the work to stop; False if it was told before or has ended. A lost lease overrules other reasons."""
        with self._lock:
            if self.ended or self.stopped == "lost" or (self.stopped is not None and stop != "lost"):
                return False
            self.stopped, self.reason = stop, reason
        self.interrupt()
        return True

    def excuse(self, reason: str) -> None:
        """It is not over its time by its own doing: it is released instead of timed out."""
        with self._lock:
            if self.stopped == "timeout" and not self.ended:
                self.stopped, self.reason = "blocked", reason

    def end(self) -> bool:
        """Whether we are the first to end it."""
        with self._lock:
            first, self.ended = not self.ended, True
            return first


class Hand:
    """All that this worker has in hand, by attempt: one that was taken from us may still be ending when we claim the
    run again. Safe to read from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int], Running] = {}

    def take(self, running: Running) -> None:
        with self._lock:
            self._running[_attempt(running)] = running

    def drop(self, running: Running) -> None:
        with self._lock:
            if self._running.get(_attempt(running)) is running:
                del self._running[_attempt(running)]

    def get(self, run_id: str, attempt: int) -> Running | None:
        with self._lock:
            return self._running.get((run_id, attempt))

    def all(self) -> list[Running]:
        with self._lock:
            return list(self._running.values())

    def __len__(self) -> int:
        return len(self._running)


def _attempt(running: Running) -> tuple[str, int]:
    return running.lease.run_id, running.lease.attempt


def began(tx: Transaction, clock: Clock) -> float:
    """When the transaction read the time, on the clock that never stops: what it promises lasts from then."""
    return clock.elapsed() - (clock.now() - tx.now).total_seconds()
