"""Event buffer: events of runs in flight, written with the worker's next commit if their leases are still ours."""

from __future__ import annotations

import math
import threading
from datetime import datetime
from typing import Any, TypeAlias

from holdfast.runs import events
from holdfast.runs.lease import Lease, guard_leases
from holdfast.store.transaction import Transaction
from holdfast.support.errors import StoreBusy
from holdfast.values.events import Event

Batch: TypeAlias = tuple[list[tuple[Lease, Event]], Event | None]
OTHER_EVENTS = 100  # events of a run that others may have written in the meantime
MAX_EVENTS = 20_000  # beyond this the oldest are dropped, so that a job that logs endlessly can't exhaust memory


class EventBuffer:
    """Events of one worker that wait for its next commit."""

    def __init__(self, holder: str) -> None:
        self._holder = holder
        self._lock = threading.Lock()
        self._buffered: list[tuple[Lease, Event]] = []
        self._taken: list[tuple[Lease, Event]] = []
        self._contention: Event | None = None
        self._recorded_at = -math.inf  # elapsed time of the last commit that recorded a contention

    def add(self, lease: Lease, kind: str, data: dict[str, Any], *, at: datetime) -> None:
        event = Event(run_id=lease.run_id, kind=kind, claim=lease.claim, data=data, happened_at=at)
        with self._lock:
            self._buffered.append((lease, event))
            del self._buffered[:-MAX_EVENTS]

    def contended(self, error: StoreBusy, *, at: datetime) -> None:
        """Record that the database was locked. One lock makes one event, however many threads waited for it.

        A thread may report the lock after the commit that recorded it, if it began to wait before that commit.
        """
        if error.since is not None and error.since < self._recorded_at:
            return
        data = {"error": str(error), "worker": self._holder}
        with self._lock:
            self._contention = self._contention or Event(run_id=None, kind="DATABASE_BUSY", data=data, happened_at=at)

    def __bool__(self) -> bool:
        return bool(self._buffered or self._contention)

    def take(self) -> Batch:
        with self._lock:
            self._taken, self._buffered = self._buffered, []
            return self._taken, self._contention

    def put_back(self, batch: Batch) -> None:
        """Buffer these events again, because their transaction did not commit."""
        with self._lock:
            self._buffered[:0] = batch[0]
            self._taken = []

    def written(self, batch: Batch, *, elapsed: float) -> None:
        """Note that the transaction that wrote these events has committed, by now (`elapsed`)."""
        with self._lock:
            if batch[1] is not None and self._contention is batch[1]:
                self._contention, self._recorded_at = None, elapsed

    def write(self, tx: Transaction, batch: Batch) -> None:
        """Write the events of runs whose leases are still ours; drop those of stale claims."""
        taken, contention = batch
        ours = (
            guard_leases(tx, {(lease.run_id, lease.claim): lease for lease, _ in taken}.values(), holder=self._holder)
            if taken
            else set()
        )
        valid = [event for lease, event in taken if (lease.run_id, lease.claim) in ours]
        events.record(tx, valid if contention is None else [*valid, contention])

    def write_last(self, tx: Transaction, lease: Lease) -> None:
        """Write the unwritten events of a run whose lease this transaction has ended.

        The events also stay in the buffer. If the transaction is rolled back, the next commit writes them; otherwise
        it drops them. Events that were taken for another commit may be written already. That commit checked the lease
        before this transaction ended it, so this transaction sees those events.
        """
        with self._lock:
            pending = [event for held, event in self._taken + self._buffered if held is lease]
        if pending:
            stored = [event for _, event in events.last(tx, lease.run_id, limit=len(pending) + OTHER_EVENTS)]
            events.record(tx, [event for event in pending if event not in stored])
