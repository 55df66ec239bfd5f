"""Recover: remove expired leases, and decide by policy what happens to their runs.

The first process that sees an expired lease marks it with the time. The lease is removed if it is not renewed within a
waiting period after that. The mark is in the database, so it does not matter which process wrote it or how long that
process lives.

a slot's run, at a worker's start  ──▶ failed, worker_startup_recovery
orphaned, on_crash = fail          ──▶ failed, PROCESS_TERMINATED
cancel was requested               ──▶ cancelled
the lease lasted to the deadline   ──▶ timed_out, or retried if its policy says so
a slot's run, past its deadline    ──▶ timed_out
on_crash = requeue                 ──▶ ready, or failed after too many takeovers
on_crash = retry                   ──▶ a failed attempt, which may be retried
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
"""The reason for ending a run that an earlier worker left behind, when the next worker of its name starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """A removed lease, and the decision about its run (None: the run can be claimed again at once)."""

    lease: Lease
    reason: str
    decision: Final | RetryLater | None

    def __str__(self) -> str:
        return (
            f"run {self.lease.run_id} ({self.lease.entry.job}) was taken from {self.lease.holder}: {self.reason}; "
            f"{self._consequence()}"
        )

    def _consequence(self) -> str:
        match self.decision:
            case None:
                return "it is queued again"
            case RetryLater(error):
                return f"it will be retried: {error}"
            case Failed(failure_type, error):
                return f"it failed with {failure_type}: {error}"
            case TimedOut(error):
                return f"it timed out: {error}"
            case Cancelled(reason):
                return f"it was cancelled: {reason}"
        return "it ended"


def expired(tx: Transaction, *, wait: timedelta, limit: int) -> list[Takeover]:
    """Mark expired leases, and remove those that were marked at least `wait` ago and not renewed since."""
    return take_away(tx, overdue(tx, wait=wait, limit=limit), reason="its lease expired")


def overdue(tx: Transaction, *, wait: timedelta, limit: int) -> Sequence[Row]:
    """Mark expired leases. Return those that were marked at least `wait` ago and not renewed since."""
    tx.put("mark_expired", now=tx.now, limit=limit)
    return tx.all("find_expired", seen_before=tx.now - wait, limit=limit)


def take_away(tx: Transaction, rows: Sequence[Row], *, reason: str, orphaned: bool = False) -> list[Takeover]:
    """Remove these leases, and move their runs as their policies say.

    `orphaned`: the process that held them is known to be gone. With `on_crash='fail'`, the runs fail for that reason,
    even if their deadline has passed.
    """
    if not rows:
        return []
    expected = [{"run_id": row["run_id"], "claim": row["claim"], "expires_at": row["expires_at"]} for row in rows]
    deleted = {row["run_id"]: row for row in tx.all("delete_expired", rows=expected)}
    endings: list[Ending] = []
    requeued: list[QueueEntry] = []
    retries: list[tuple[Wait, KeyOrder]] = []
    taken: list[Takeover] = []
    for row in rows:
        if row["run_id"] not in deleted:
            continue
        # Use the values that the DELETE returned: a cancel may have been requested since we read the row.
        lease, policy = Lease.of(row | deleted[row["run_id"]]), policy_from_json(row["policy"])
        entry = lease.entry.changed(takeovers=lease.entry.takeovers + 1)
        slot = row["kind"] == "slot"
        decision = decide(tx, lease, policy, reason=reason, orphaned=orphaned, slot=slot)
        taken.append(Takeover(lease=lease, reason=reason, decision=decision))
        tx.count("takeover")
        match decision:
            case RetryLater(error, after, key_order):
                retries.append((Wait(entry=entry, due_at=tx.now + after, reason=error[:1000]), key_order))
            case None:
                # The worker was lost, but the run did not fail, so this uses up no attempt.
                requeued.append(entry.changed(attempt=entry.attempt - 1))
            case final:
                endings.append(Ending(entry=entry, outcome=final, holder=lease.holder, started_at=lease.started_at))
    events.record(tx, [_diagnostic(one) for one in taken])
    tx.notify(*{row["queue"] for row in rows if row["run_id"] in deleted and row["permit"] is not None})
    end_runs(tx, endings)
    open_key_locks(tx, [wait.entry for wait, key_order in retries if key_order == "due"])
    add_waiting(tx, [wait for wait, _ in retries])
    ready.put(tx, requeued)
    return taken


def decide(
    tx: Transaction, lease: Lease, policy: Policy, *, reason: str, orphaned: bool = False, slot: bool = False
) -> Final | RetryLater | None:
    """Decide what happens to a run whose worker was lost; None means that it can be claimed again at once."""
    if slot and reason == STARTUP:
        # The lost worker is the reason, even if the deadline has passed or a cancel was requested.
        return Failed("PROCESS_TERMINATED", STARTUP)
    if orphaned and policy.on_crash == "fail":
        # The lost process is the reason, even if the deadline passed or a cancel came while no worker was alive.
        return Failed("PROCESS_TERMINATED", f"worker {lease.holder} was lost: {reason}")
    if lease.cancel_requested_at is not None:
        return Cancelled(lease.cancel_reason or "cancelled")
    if _timed_out(tx, lease, slot=slot):
        error = f"{policy.timed_out}; worker {lease.holder} was lost"
        if policy.on_timeout == "retry":
            return _retry_or(tx, lease, policy, error, TimedOut(error))
        return TimedOut(error)
    error = f"worker {lease.holder} was lost: {reason}"
    match policy.on_crash:
        case "fail":
            return Failed("PROCESS_TERMINATED", error)
        case "retry":
            return _retry_or(tx, lease, policy, error, Failed("PROCESS_TERMINATED", error))
        case "requeue":
            if lease.entry.takeovers >= policy.max_takeovers:
                return Failed(
                    "TAKEOVER_LIMIT",
                    f"{lease.entry.takeovers + 1} workers were lost while executing this run; "
                    f"the last one was {lease.holder}",
                )
            return None


def _timed_out(tx: Transaction, lease: Lease, *, slot: bool) -> bool:
    """Whether the run timed out: its lease was valid until its deadline.

    A lease that expired earlier means a lost worker, even if that is noticed after the deadline. A slot's run is never
    started again, so for it only the current time counts.
    """
    if lease.deadline_at is None:
        return False
    return lease.deadline_at <= (tx.now if slot else lease.expires_at)


def _retry_or(tx: Transaction, lease: Lease, policy: Policy, error: str, otherwise: Final) -> Final | RetryLater:
    if lease.entry.attempt >= policy.max_attempts:
        return otherwise
    after = policy.retry.wait_before(lease.entry.attempt + 1, fraction=tx.ids.fraction())
    return RetryLater(error, after, key_order=policy.key_order)


def _diagnostic(takeover: Takeover) -> Event:
    lease, decision = takeover.lease, takeover.decision
    word = "requeued" if decision is None else decision.word
    data = {"reason": takeover.reason, "decision": word, "expired_at": lease.expires_at.isoformat()}
    return lease_event(lease, "RUN_TAKEN_OVER", data)
