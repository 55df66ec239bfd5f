"""Guardian renewal: renews the leases of a worker from its guardian's process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.runs import workers
from holdfast.runs.lease import Lease, lease_marks, leases_of, renew_leases
from holdfast.store import connect
from holdfast.store.transaction import Transaction
from holdfast.support.clock import SystemClock
from holdfast.support.errors import StoreBusy
from holdfast.support.ids import Ids
from holdfast.support.settings import Settings
from holdfast.worker.in_flight import began


@dataclass(frozen=True)
class Renewal:
    """What came of it, in seconds of `Clock.elapsed`.

    renewed_until  until when the leases are renewed; 0 if only a read was possible
    guarded_until  until when nobody can have taken one away
    overdue_at     when the first deadline and the time to kill are over
    words          for the log
    """

    renewed_until: float
    guarded_until: float
    overdue_at: float | None
    words: str


class Rescue:
    def __init__(self, told: dict[str, Any]) -> None:
        self._holder: str = told["holder"]
        self._settings = Settings.model_validate(told["settings"])
        self._clock = SystemClock()
        self._store = connect.open_store(self._settings, engine=None, clock=self._clock, ids=Ids())

    def renew(self, *, stopping: bool) -> Renewal:
        """Extend every lease of the worker; while others lock the database, read that they are still its own."""
        self._store.follow_clock()
        try:
            return self._store.do(partial(self._renew, stopping=stopping), patience=self._settings.renew_every / 5)
        except StoreBusy:
            return self._store.read(self._prove)

    def _renew(self, tx: Transaction, *, stopping: bool) -> Renewal:
        settings = self._settings
        held = leases_of(tx, self._holder)
        workers.beat(tx, self._holder, lease_for=settings.lease, stopping=stopping)
        renewed = renew_leases(tx, held, holder=self._holder, lease_for=settings.lease, kill_grace=settings.kill_grace)
        asked = began(tx, self._clock)
        return Renewal(
            renewed_until=asked + settings.lease.total_seconds(),
            guarded_until=asked + (settings.lease + settings.proof_for).total_seconds(),
            overdue_at=self._overdue(tx, held),
            words=f"renewed {len(renewed)} leases",
        )

    def _prove(self, tx: Transaction) -> Renewal:
        """A lease that is not marked as expired can't be taken away before the wait that follows a mark."""
        held = leases_of(tx, self._holder)
        marks = [seen_at for seen_at in lease_marks(tx, self._holder).values() if seen_at is not None]
        since = min(marks, default=tx.now)
        safe_for = self._settings.proof_for - (tx.now - since)
        return Renewal(
            renewed_until=0.0,
            guarded_until=began(tx, self._clock) + safe_for.total_seconds(),
            overdue_at=self._overdue(tx, held),
            words=f"the database is locked, but {len(held)} leases are still its own",
        )

    def _overdue(self, tx: Transaction, held: list[Lease]) -> float | None:
        deadlines = [lease.deadline_at for lease in held if lease.deadline_at is not None]
        if not deadlines:
            return None
        return began(tx, self._clock) + (min(deadlines) + self._settings.kill_grace - tx.now).total_seconds()
