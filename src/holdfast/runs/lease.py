"""Leases: the right of a worker to execute a run until a time that the worker keeps extending.

    ready ──claim──▶ leases ──finish──▶ outcomes
                       │ renew: the worker is still alive
                       └ expired: an orchestrator marks the lease, and removes it if no renewal follows

A worker holds its lease, expired or not, until the row is deleted.

A worker claims a run only when it can start it at once. Every write for a running run checks `run_id`, `claim` and
`holder`; if they do not match exactly one row, the lease is lost and nothing is written.
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
    entry: QueueEntry
    holder: str
    started_at: datetime
    expires_at: datetime
    deadline_at: datetime | None
    cancel_requested_at: datetime | None = None
    cancel_reason: str | None = None
    permit: int | None = None
    """The number of its concurrency permit, if the concurrency of its queue is limited."""

    @property
    def run_id(self) -> str:
        return self.entry.run_id

    @property
    def claim(self) -> int:
        return self.entry.claim

    @classmethod
    def of(cls, row: Row) -> Lease:
        return cls(entry=QueueEntry.of(row), **{name: row[name] for name in cls.__slots__ if name != "entry"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """The result of extending a lease, including whether the run was cancelled."""

    run_id: str
    claim: int
    cancelled: bool
    reason: str | None


def renew_leases(
    tx: Transaction, held: Iterable[Lease], *, holder: str, lease_for: timedelta, kill_grace: timedelta
) -> list[Renewal]:
    """Extend our own leases from now. A lease that is missing from the result is lost."""
    rows = [
        {
            "run_id": lease.run_id,
            "claim": lease.claim,
            "expires_at": lease_expiry(tx.now, lease.deadline_at, lease_for=lease_for, kill_grace=kill_grace),
        }
        for lease in sorted(held, key=lambda lease: lease.run_id)
    ]
    return [
        Renewal(
            run_id=row["run_id"],
            claim=row["claim"],
            cancelled=row["cancel_requested_at"] is not None,
            reason=row["cancel_reason"],
        )
        for row in tx.all("renew_leases", rows=rows, holder=holder)
    ]


def guard_leases(tx: Transaction, leases: Iterable[Lease], *, holder: str) -> set[tuple[str, int]]:
    """Return the leases that are still ours, locked until this transaction ends."""
    rows = sorted(
        ({"run_id": lease.run_id, "claim": lease.claim} for lease in leases),
        key=lambda row: str(row["run_id"]),
    )
    return {(row["run_id"], row["claim"]) for row in tx.all("guard_leases", rows=rows, holder=holder)}


def require_lease(tx: Transaction, lease: Lease) -> None:
    """Raise LeaseLost unless this lease is still ours."""
    if not guard_leases(tx, [lease], holder=lease.holder):
        raise LeaseLost(f"run {lease.run_id}: claim {lease.claim} no longer holds its lease")


def require_attempt(tx: Transaction, run_id: str, claim: int) -> None:
    """Raise LeaseLost unless this claim is still current; lock its lease until this transaction ends."""
    rows = [{"run_id": run_id, "claim": claim}]
    found = tx.one("find_claims", ids=[run_id])
    if found is None or not tx.all("guard_leases", rows=rows, holder=found["holder"]):
        raise LeaseLost(f"run {run_id}: claim {claim} no longer holds its lease")


def give_up_leases(tx: Transaction, leases: Iterable[Lease], *, holder: str) -> dict[str, Lease]:
    """Delete our own leases and return, by run id, those that were still ours. The caller must move their runs."""
    given = {lease.run_id: lease for lease in leases}
    rows = [{"run_id": lease.run_id, "claim": lease.claim} for lease in given.values()]
    tx.notify(*{lease.entry.queue for lease in given.values() if lease.permit is not None})
    return {
        row["run_id"]: _with_cancel(given[row["run_id"]], row)
        for row in tx.all("delete_leases", rows=rows, holder=holder)
    }


def _with_cancel(lease: Lease, row: Row) -> Lease:
    """Return the lease with the cancel request from its row, which our copy of the lease may not have."""
    if row["cancel_requested_at"] is None:
        return lease
    return replace(lease, cancel_requested_at=row["cancel_requested_at"], cancel_reason=row["cancel_reason"])


def leases_of(tx: Transaction, holder: str) -> list[Lease]:
    return [Lease.of(row) for row in tx.all("find_leases_of", holder=holder)]


def lease_marks(tx: Transaction, holder: str) -> dict[tuple[str, int], datetime | None]:
    """For each run and claim that this worker holds, return when its lease was first seen to have expired."""
    return {(row["run_id"], row["claim"]): row["expired_seen_at"] for row in tx.all("find_leases_of", holder=holder)}


def lease_expiry(
    now: datetime, deadline_at: datetime | None, *, lease_for: timedelta, kill_grace: timedelta
) -> datetime:
    """Return when a lease expires: after `lease_for`, or soon after the deadline of the run if that is earlier."""
    if deadline_at is None:
        return now + lease_for
    # Leave time to kill the run and write its outcome. Otherwise recovery would end the run at the same moment.
    return min(now + lease_for, deadline_at + kill_grace + lease_for / 3)
