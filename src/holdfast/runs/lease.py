"""Leases: who runs what, until when.

    ready ──claim──▶ leases ──finish──▶ outcomes
                       │ renew: the same worker, still alive
                       └ expired: an orchestrator marks it, waits for a renewal, then takes it away

The holder of a lease is its owner, expired or not, until the row is gone.

A claim is a start: it takes only as many runs as the worker has free places. Every write for a running run carries
`run_id + attempt + holder`; if that does not touch exactly one row, the lease is lost and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from holdfast.runs.queue_entry import QueueEntry
from holdfast.store.transaction import Row, Transaction
from holdfast.support.errors import LeaseLost


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    ticket: QueueEntry
    holder: str
    started_at: datetime
    expires_at: datetime
    deadline_at: datetime | None
    cancel_requested_at: datetime | None = None
    cancel_reason: str | None = None
    place: int | None = None
    """Which of its queue's places it has, where the queue has a limited number."""

    @property
    def run_id(self) -> str:
        return self.ticket.run_id

    @property
    def attempt(self) -> int:
        return self.ticket.attempt

    @classmethod
    def of(cls, row: Row) -> Lease:
        return cls(ticket=QueueEntry.of(row), **{name: row[name] for name in cls.__slots__ if name != "ticket"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """Our lease, extended; and whether someone asked the run to stop."""

    run_id: str
    attempt: int
    cancelled: bool
    reason: str | None


def renew_leases(
    tx: Transaction, held: Iterable[Lease], *, holder: str, lease_for: timedelta, kill_grace: timedelta
) -> list[Renewal]:
    """Extend our own leases from now; those that do not come back are lost."""
    rows = [
        {
            "run_id": lease.run_id,
            "attempt": lease.attempt,
            "expires_at": lease_expiry(tx.now, lease.deadline_at, lease_for=lease_for, kill_grace=kill_grace),
        }
        for lease in sorted(held, key=lambda lease: lease.run_id)
    ]
    return [
        Renewal(
            run_id=row["run_id"],
            attempt=row["attempt"],
            cancelled=row["cancel_requested_at"] is not None,
            reason=row["cancel_reason"],
        )
        for row in tx.all("renew_leases", rows=rows, holder=holder)
    ]


def guard_leases(tx: Transaction, leases: Iterable[Lease], *, holder: str) -> set[tuple[str, int]]:
    """Which of these leases are still ours; no one can take them before this transaction ends."""
    rows = sorted(
        ({"run_id": lease.run_id, "attempt": lease.attempt} for lease in leases),
        key=lambda row: str(row["run_id"]),
    )
    return {(row["run_id"], row["attempt"]) for row in tx.all("guard_leases", rows=rows, holder=holder)}


def require_lease(tx: Transaction, lease: Lease) -> None:
    """Raise LeaseLost unless this lease is still ours."""
    if not guard_leases(tx, [lease], holder=lease.holder):
        raise LeaseLost(f"run {lease.run_id}: attempt {lease.attempt} no longer holds its lease")


def require_attempt(tx: Transaction, run_id: str, attempt: int) -> None:
    """Raise LeaseLost unless this attempt still holds its run; no one can take it before this transaction ends."""
    rows = [{"run_id": run_id, "attempt": attempt}]
    found = tx.one("find_attempts", ids=[run_id])
    if found is None or not tx.all("guard_leases", rows=rows, holder=found["holder"]):
        raise LeaseLost(f"run {run_id}: attempt {attempt} no longer holds its lease")


def give_up_leases(tx: Transaction, leases: Iterable[Lease], *, holder: str) -> dict[str, Lease]:
    """Remove our own leases; by run, those that were still ours and must now be put somewhere else."""
    given = {lease.run_id: lease for lease in leases}
    rows = [{"run_id": lease.run_id, "attempt": lease.attempt} for lease in given.values()]
    tx.notify(*{lease.ticket.queue for lease in given.values() if lease.place is not None})
    return {
        row["run_id"]: _asked(given[row["run_id"]], row) for row in tx.all("delete_leases", rows=rows, holder=holder)
    }


def _asked(lease: Lease, row: Row) -> Lease:
    """The lease as we know it, and whether someone asked its run to stop: all else is as we wrote it."""
    if row["cancel_requested_at"] is None:
        return lease
    return replace(lease, cancel_requested_at=row["cancel_requested_at"], cancel_reason=row["cancel_reason"])


def leases_of(tx: Transaction, holder: str) -> list[Lease]:
    return [Lease.of(row) for row in tx.all("find_leases_of", holder=holder)]


def lease_marks(tx: Transaction, holder: str) -> dict[tuple[str, int], datetime | None]:
    """For each run and attempt that this worker holds: when an orchestrator saw the lease expired, if one did."""
    return {(row["run_id"], row["attempt"]): row["expired_seen_at"] for row in tx.all("find_leases_of", holder=holder)}


def lease_expiry(
    now: datetime, deadline_at: datetime | None, *, lease_for: timedelta, kill_grace: timedelta
) -> datetime:
    """A lease never outlives the run's deadline by more than it takes to kill it and to write that down."""
    if deadline_at is None:
        return now + lease_for
    # With no time to write it down, whoever looks for expired leases would end the run while we do.
    return min(now + lease_for, deadline_at + kill_grace + lease_for / 3)
