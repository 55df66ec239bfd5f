"""Chronicle: events of running runs, written with the next transaction, through the fence."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any, TypeAlias

from holdfast.runs import events
from holdfast.runs.lease import Lease, guard_leases
from holdfast.store.transaction import Transaction
from holdfast.support.errors import StoreBusy
from holdfast.values.events import Event

Told: TypeAlias = tuple[list[tuple[Lease, Event]], Event | None]
BESIDES = 100  # events of a run that others may have written meanwhile
MOST = 20_000  # a job that logs without end loses its oldest records, not the worker's memory


class EventBuffer:
    def __init__(self, holder: str) -> None:
        self._holder = holder
        self._lock = threading.Lock()
        self._told: list[tuple[Lease, Event]] = []
        self._taken: list[tuple[Lease, Event]] = []
        self._contention: Event | None = None

    def tell(self, lease: Lease, kind: str, data: dict[str, Any], *, at: datetime) -> None:
        event = Event(run_id=lease.run_id, kind=kind, attempt=lease.attempt, data=data, happened_at=at)
        with self._lock:
            self._told.append((lease, event))
            del self._told[:-MOST]

    def contended(self, error: StoreBusy, *, at: datetime) -> None:
        """The database was locked. However often that is noticed before the next commit, it makes one event."""
        data = {"error": str(error), "worker": self._holder}
        with self._lock:
            self._contention = self._contention or Event(
                run_id=None, kind="SCHEDULER_CONTENTION", data=data, happened_at=at
            )

    def __bool__(self) -> bool:
        return bool(self._told or self._contention)

    def take(self) -> Told:
        with self._lock:
            self._taken, self._told = self._told, []
            return self._taken, self._contention

    def put_back(self, taken: Told) -> None:
        """The transaction that was to write these did not happen."""
        with self._lock:
            self._told[:0] = taken[0]
            self._taken = []

    def written(self, taken: Told) -> None:
        """The transaction that wrote these was committed."""
        with self._lock:
            if self._contention is taken[1]:
                self._contention = None

    def write(self, tx: Transaction, taken: Told) -> None:
        """Write what was told of runs that are still ours; the rest is a stale attempt's and is dropped."""
        told, contention = taken
        ours = (
            guard_leases(tx, {(lease.run_id, lease.attempt): lease for lease, _ in told}.values(), holder=self._holder)
            if told
            else set()
        )
        found = [event for lease, event in told if (lease.run_id, lease.attempt) in ours]
        events.record(tx, found if contention is None else [*found, contention])

    def write_last(self, tx: Transaction, lease: Lease) -> None:
        """Write what was told of a run whose lease this transaction has ended, and is not written yet.

        It stays here, too: if the transaction is undone, it is written as always, else dropped. What was taken lately
        may have been written; whoever did had the lease, so it is to be seen now.
        """
        with self._lock:
            told = [event for held, event in self._taken + self._told if held is lease]
        if told:
            lately = [event for _, event in events.last(tx, lease.run_id, limit=len(told) + BESIDES)]
            events.record(tx, [event for event in told if event not in lately])
