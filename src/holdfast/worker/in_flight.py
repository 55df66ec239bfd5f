"""In flight: the runs that this worker has claimed and not finished, and how to stop them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.jobs.job import Job
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.lease import Lease
from holdfast.store.transaction import Transaction
from holdfast.support.clock import Clock
from holdfast.worker.guardian import Guardian

Stop = Literal["timeout", "cancel", "lost", "shutdown", "blocked"]
"""Why a run must stop. `blocked`: another run blocks the event loop, so this one is released."""


@dataclass(eq=False)
class RunInFlight:
    """One claimed run. It ends only once: when its function ends, or when it is stopped."""

    claimed: ClaimedRun
    job: Job[..., Any]
    lease_until: float
    """Time on `clock.elapsed` after which another worker may have the run."""
    deadline: float | None
    last: float = math.inf
    """The latest time to which the lease may be renewed: the deadline plus the time that a kill takes."""
    stopped: Stop | None = None
    reason: str = ""
    interrupt: Callable[[], None] = lambda: None
    """Interrupts the function; the dispatcher sets it."""
    renewed: Callable[[], None] = lambda: None
    """Called after the lease is extended."""
    finishing: bool = False
    """Whether the job has called ctx.finish. Only the database shows whether the transaction was committed."""
    ended: bool = False
    executing: bool = False
    """Whether its function is executing now in a thread or in the event loop."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def lease(self) -> Lease:
        return self.claimed.lease

    @property
    def can_be_killed(self) -> bool:
        """Whether it runs in a separate process; threads and tasks can't be killed."""
        return self.job.isolation == "process"

    def extend(self, until: float) -> None:
        """Set the time until which the lease is ours, at most `last`."""
        self.lease_until = min(until, self.last)
        self.renewed()

    def stop(self, stop: Stop, reason: str) -> bool:
        """Stop the work; False if it has ended or is being stopped already. A lost lease overrides other reasons."""
        with self._lock:
            if self.ended or self.stopped == "lost" or (self.stopped is not None and stop != "lost"):
                return False
            self.stopped, self.reason = stop, reason
        self.interrupt()
        return True

    def release_instead(self, reason: str) -> None:
        """Release the run instead of timing it out, because another run blocked the event loop."""
        with self._lock:
            if self.stopped == "timeout" and not self.ended:
                self.stopped, self.reason = "blocked", reason

    def end(self) -> bool:
        """Mark the run as ended; True for the first caller."""
        with self._lock:
            first, self.ended = not self.ended, True
            return first


class InFlight:
    """The runs in flight of this worker, by run id and claim number. Thread-safe.

    The claim number is part of the key because this worker may claim a run again while its old claim is still ending.
    """

    def __init__(self) -> None:
        self.guardian = Guardian()
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int], RunInFlight] = {}
        self._abandoned: set[RunInFlight] = set()
        self._executing = 0

    def take(self, running: RunInFlight) -> None:
        with self._lock:
            self._running[_key(running)] = running
            if not running.can_be_killed:
                self._count(+1)

    def drop(self, running: RunInFlight) -> None:
        """Remove a run whose outcome is stored."""
        with self._lock:
            if self._remove(running) and not running.can_be_killed:
                self._count(-1)

    def give_up(self, running: RunInFlight) -> None:
        """Remove a run whose lease is lost. Its function may be executing until `returned` is called."""
        with self._lock:
            if not self._remove(running) or running.can_be_killed:
                return
            if running.executing:
                self._abandoned.add(running)
            else:
                self._count(-1)

    def returned(self, running: RunInFlight) -> None:
        """Note that the function of this run has returned."""
        with self._lock:
            running.executing = False
            if running in self._abandoned:
                self._abandoned.remove(running)
                self._count(-1)

    def _remove(self, running: RunInFlight) -> bool:
        present = self._running.get(_key(running)) is running
        if present:
            del self._running[_key(running)]
        return present

    def _count(self, more: int) -> None:
        """Update how many functions a takeover could execute a second time, for the guardian."""
        self._executing += more
        self.guardian.executing(self._executing)

    def get(self, run_id: str, claim: int) -> RunInFlight | None:
        with self._lock:
            return self._running.get((run_id, claim))

    def all(self) -> list[RunInFlight]:
        with self._lock:
            return list(self._running.values())

    def __len__(self) -> int:
        return len(self._running)


def _key(running: RunInFlight) -> tuple[str, int]:
    return running.lease.run_id, running.lease.claim


def transaction_start(tx: Transaction, clock: Clock) -> float:
    """Return the transaction's time on `clock.elapsed`; its leases count from then."""
    return clock.elapsed() - (clock.now() - tx.now).total_seconds()
