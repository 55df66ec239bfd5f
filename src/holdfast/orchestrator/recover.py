"""Recover: what becomes of runs whose lease ran out.

A lease that ran out is marked with the time at which that was first seen. It is taken away if it is not renewed for a
while after that. The mark is in the database: it does not matter which process saw it, or how long that process lives.

a slot's run, at a worker's start  ──▶ failed, worker_startup_recovery
cancel was requested               ──▶ cancelled
the lease lasted to the deadline   ──▶ timed_out, or tried again, as its policy says
a slot's run, past its deadline    ──▶ timed_out
on_crash = requeue                 ──▶ ready, until too many workers were lost with it
on_crash = retry                   ──▶ a failed attempt like any other
on_crash = fail                    ──▶ failed, PROCESS_TERMINATED
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from holdfast.runs import events, ready
from holdfast.runs.finish import end_runs
from holdfast.runs.lease import Lease
from holdfast.runs.limits.keys import open_key_locks
from holdfast.runs.outcomes import Cancelled, Ending, Failed, Final, RetryLater, TimedOut
from holdfast.runs.queue_entry import QueueEntry
from holdfast.runs.retry import lease_event
from holdfast.runs.waiting import Wait, add_waiting
from holdfast.store.transaction import Row, Transaction
from holdfast.values.events import Event
from holdfast.values.policies import KeyOrder, Policy, policy_from_json

STARTUP = "worker_startup_recovery"
"""Why a run ends that an earlier worker left behind, when the next worker of its name starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """A lease that was taken away, and what became of its run (None: it can be claimed again at once)."""

    lease: Lease
    because: str
    decision: Final | RetryLater | None

    def __str__(self) -> str:
        return (
            f"run {self.lease.run_id} ({self.lease.ticket.job}) was taken from {self.lease.holder}: {self.because}; "
            f"{self._what()}"
        )

    def _what(self) -> str:
        match self.decision:
            case None:
                return "it is queued again"
            case RetryLater(error):
                return f"it is tried again later: {error}"
            case Failed(failure_type, error):
                return f"it failed, {failure_type}: {error}"
            case TimedOut(error):
                return f"it timed out: {error}"
            case Cancelled(reason):
                return f"it was cancelled: {reason}"
        return "it ended"


def expired(tx: Transaction, *, wait: timedelta, limit: int) -> list[Takeover]:
    """Mark leases that ran out, and take away those that were marked at least `wait` ago and not renewed since."""
    return take_away(tx, overdue(tx, wait=wait, limit=limit), because="its lease ran out")


def overdue(tx: Transaction, *, wait: timedelta, limit: int) -> Sequence[Row]:
    """Mark leases that ran out; the leases that were marked at least `wait` ago and not renewed since."""
    tx.put("mark_expired", now=tx.now, limit=limit)
    return tx.all("find_expired", seen_before=tx.now - wait, limit=limit)


def take_away(tx: Transaction, rows: Sequence[Row], *, because: str, orphaned: bool = False) -> list[Takeover]:
    """Move the runs of these leases to where their policies say.

    `orphaned` says that their process is known to be gone: that is why they end, however long ago it was.
    """
    if not rows:
        return []
    seen = [{"run_id": row["run_id"], "attempt": row["attempt"], "expires_at": row["expires_at"]} for row in rows]
    gone = {row["run_id"]: row for row in tx.all("delete_expired", rows=seen)}
    endings: list[Ending] = []
    again: list[QueueEntry] = []
    later: list[tuple[Wait, KeyOrder]] = []
    taken: list[Takeover] = []
    for row in rows:
        if row["run_id"] not in gone:
            continue
        # A cancel may have been accepted since we looked: what the DELETE returned is what counts.
        lease, policy = Lease.of(row | gone[row["run_id"]]), policy_from_json(row["policy"])
        ticket = lease.ticket.changed(takeovers=lease.ticket.takeovers + 1)
        slot = row["kind"] == "slot"
        decision = decide(tx, lease, policy, because=because, orphaned=orphaned, slot=slot)
        taken.append(Takeover(lease=lease, because=because, decision=decision))
        tx.count("taken_over")
        match decision:
            case RetryLater(error, after, key_order):
                later.append((Wait(ticket=ticket, due_at=tx.now + after, because=error[:1000]), key_order))
            case None:
                # The work was lost with its worker, not by its own fault: it has used up no try.
                again.append(ticket.changed(tries=ticket.tries - 1))
            case final:
                endings.append(Ending(ticket=ticket, outcome=final, holder=lease.holder, started_at=lease.started_at))
    events.record(tx, [_diagnostic(one) for one in taken])
    tx.notify(*{row["queue"] for row in rows if row["run_id"] in gone and row["place"] is not None})
    end_runs(tx, endings)
    open_key_locks(tx, [wait.ticket for wait, key_order in later if key_order == "due"])
    add_waiting(tx, [wait for wait, _ in later])
    ready.put(tx, again)
    return taken


def decide(
    tx: Transaction, lease: Lease, policy: Policy, *, because: str, orphaned: bool = False, slot: bool = False
) -> Final | RetryLater | None:
    """What the loss of its worker means for a run; None is: let it be claimed again at once."""
    if slot and because == STARTUP:
        # That its worker is gone is known; neither its time nor a request to cancel it is the reason.
        return Failed("PROCESS_TERMINATED", STARTUP)
    if orphaned and policy.on_crash == "fail":
        # Not because of its time, which went on while no one was there, nor of a wish that no one could hear.
        return Failed("PROCESS_TERMINATED", f"its worker {lease.holder} was lost: {because}")
    if lease.cancel_requested_at is not None:
        return Cancelled(lease.cancel_reason or "cancelled")
    if _timed_out(tx, lease, slot=slot):
        error = f"{policy.timed_out}; its worker {lease.holder} was silent"
        if policy.on_timeout == "retry":
            return _retry_or(tx, lease, policy, error, TimedOut(error))
        return TimedOut(error)
    error = f"its worker {lease.holder} was lost: {because}"
    match policy.on_crash:
        case "fail":
            return Failed("PROCESS_TERMINATED", error)
        case "retry":
            return _retry_or(tx, lease, policy, error, Failed("PROCESS_TERMINATED", error))
        case "requeue":
            if lease.ticket.takeovers >= policy.max_takeovers:
                return Failed(
                    "TAKEOVER_LIMIT",
                    f"{lease.ticket.takeovers + 1} workers were lost with it; the last was {lease.holder}",
                )
            return None


def _timed_out(tx: Transaction, lease: Lease, *, slot: bool) -> bool:
    """Whether the run was still held at its deadline. A lease that ran out earlier means a lost worker, even if that
    is noticed after the deadline. A slot's run is never started again, so for it only the time of noticing counts."""
    if lease.deadline_at is None:
        return False
    return lease.deadline_at <= (tx.now if slot else lease.expires_at)


def _retry_or(tx: Transaction, lease: Lease, policy: Policy, error: str, otherwise: Final) -> Final | RetryLater:
    if lease.ticket.tries >= policy.max_attempts:
        return otherwise
    after = policy.retry.wait_before(lease.ticket.tries + 1, fraction=tx.ids.fraction())
    return RetryLater(error, after, key_order=policy.key_order)


def _diagnostic(takeover: Takeover) -> Event:
    lease, decision = takeover.lease, takeover.decision
    what = "requeued" if decision is None else decision.word
    data = {"because": takeover.because, "decision": what, "expired_at": lease.expires_at.isoformat()}
    return lease_event(lease, "RUN_TAKEN_OVER", data)
