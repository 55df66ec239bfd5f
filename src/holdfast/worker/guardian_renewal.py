"""Guardian renewal: renews the leases of a worker from its guardian process."""

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
from holdfast.worker.in_flight import transaction_start


@dataclass(frozen=True)
class Renewal:
    """The result of one renewal. Times are seconds of `Clock.elapsed`.

    renewed_until  until when the leases are renewed; 0 if only a read was possible
    guarded_until  until when nobody can take one of the leases
    overdue_at     the first deadline plus the kill grace; None without deadlines
    message        for the log
    """

    renewed_until: float
    guarded_until: float
    overdue_at: float | None
    message: str


class GuardianRenewal:
    """Renews the leases of one worker over a connection of its own."""

    def __init__(self, instructions: dict[str, Any]) -> None:
        self._holder: str = instructions["holder"]
        self._settings = Settings.model_validate(instructions["settings"])
        self._clock = SystemClock()
        self._store = connect.open_store(self._settings, engine=None, clock=self._clock, ids=Ids())

    def renew(self, *, stopping: bool) -> Renewal:
        """Extend every lease of the worker. If the database is locked, only read which leases it still has."""
        self._store.follow_clock()
        try:
            return self._store.do(partial(self._renew, stopping=stopping), patience=self._settings.renew_every / 5)
        except StoreBusy:
            return self._store.read(self._confirm)

    def _renew(self, tx: Transaction, *, stopping: bool) -> Renewal:
        settings = self._settings
        held = leases_of(tx, self._holder)
        workers.beat(tx, self._holder, lease_for=settings.lease, stopping=stopping)
        renewed = renew_leases(tx, held, holder=self._holder, lease_for=settings.lease, kill_grace=settings.kill_grace)
        started = transaction_start(tx, self._clock)
        return Renewal(
            renewed_until=started + settings.lease.total_seconds(),
            guarded_until=started + (settings.lease + settings.proof_for).total_seconds(),
            overdue_at=self._overdue(tx, held),
            message=f"renewed {len(renewed)} leases",
        )

    def _confirm(self, tx: Transaction) -> Renewal:
        """Compute how long the leases are safe. Nobody may take a lease until some time after marking it as expired."""
        held = leases_of(tx, self._holder)
        marks = [last_seen_at for last_seen_at in lease_marks(tx, self._holder).values() if last_seen_at is not None]
        since = min(marks, default=tx.now)
        safe_for = self._settings.proof_for - (tx.now - since)
        return Renewal(
            renewed_until=0.0,
            guarded_until=transaction_start(tx, self._clock) + safe_for.total_seconds(),
            overdue_at=self._overdue(tx, held),
            message=f"the database is locked, but the worker still holds {len(held)} leases",
        )

    def _overdue(self, tx: Transaction, held: list[Lease]) -> float | None:
        deadlines = [lease.deadline_at for lease in held if lease.deadline_at is not None]
        if not deadlines:
            return None
        return (
            transaction_start(tx, self._clock) + (min(deadlines) + self._settings.kill_grace - tx.now).total_seconds()
        )
