"""Running: what this worker has in hand, and how each of it is told to stop."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.jobs.job import Job
from holdfast.runs.claim import Claim
from holdfast.runs.lease import Lease
from holdfast.store.transaction import Transaction
from holdfast.support.clock import Clock
from holdfast.worker.guardian import Guardian

Stop = Literal["timeout", "cancel", "lost", "shutdown", "blocked"]
"""Why work has to stop. `blocked`: another run blocks the event loop; this one is released."""


@dataclass(eq=False)
class RunInFlight:
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
    executing: bool = False
    """Whether its function executes now, in a thread or in the event loop."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def lease(self) -> Lease:
        return self.claim.lease

    @property
    def can_be_killed(self) -> bool:
        """Whether it runs in a process of its own; a thread and a task can only be asked to stop."""
        return self.job.isolation == "process"

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


class InFlight:
    """All that this worker has in hand, by attempt: one that was taken from us may still be ending when we claim the
    run again. Safe to read from any thread."""

    def __init__(self) -> None:
        self.guardian = Guardian()
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int], RunInFlight] = {}
        self._lingering: set[RunInFlight] = set()
        self._executing = 0

    def take(self, running: RunInFlight) -> None:
        with self._lock:
            self._running[_attempt(running)] = running
            if not running.can_be_killed:
                self._count(+1)

    def drop(self, running: RunInFlight) -> None:
        """Its end is written."""
        with self._lock:
            if self._remove(running) and not running.can_be_killed:
                self._count(-1)

    def give_up(self, running: RunInFlight) -> None:
        """It is no longer ours, but its function may still execute; `returned` says when it does not."""
        with self._lock:
            if not self._remove(running) or running.can_be_killed:
                return
            if running.executing:
                self._lingering.add(running)
            else:
                self._count(-1)

    def returned(self, running: RunInFlight) -> None:
        """Its function has returned."""
        with self._lock:
            running.executing = False
            if running in self._lingering:
                self._lingering.remove(running)
                self._count(-1)

    def _remove(self, running: RunInFlight) -> bool:
        found = self._running.get(_attempt(running)) is running
        if found:
            del self._running[_attempt(running)]
        return found

    def _count(self, more: int) -> None:
        """How many functions a takeover could double, for the guardian."""
        self._executing += more
        self.guardian.executing(self._executing)

    def get(self, run_id: str, attempt: int) -> RunInFlight | None:
        with self._lock:
            return self._running.get((run_id, attempt))

    def all(self) -> list[RunInFlight]:
        with self._lock:
            return list(self._running.values())

    def __len__(self) -> int:
        return len(self._running)


def _attempt(running: RunInFlight) -> tuple[str, int]:
    return running.lease.run_id, running.lease.attempt


def began(tx: Transaction, clock: Clock) -> float:
    """When the transaction read the time, on the clock that never stops: what it promises lasts from then."""
    return clock.elapsed() - (clock.now() - tx.now).total_seconds()
