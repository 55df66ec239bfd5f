"""Claim: take runs from `ready` and lease them to a worker, in one transaction.

ready ──claim──▶ leases             the run has a lease
      └─conflict─▶ waits            another lease holds its key, or its rate allows no start now
      └─no permit─▶ ready           its queue already runs as many runs as its concurrency allows
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from holdfast.runs import ready
from holdfast.runs.lease import Lease, lease_expiry
from holdfast.runs.limits import rates
from holdfast.runs.limits.concurrency import number_permits
from holdfast.runs.limits.keys import open_key_locks
from holdfast.runs.queue_entry import QueueEntry
from holdfast.runs.ready import Position, Taken
from holdfast.runs.submission import read_depends_on, tags_of
from holdfast.runs.waiting import Wait, add_waiting
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.values.policies import UNREADABLE_POLICY, Policy, load_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRun:
    """A new lease, with the stored submission of its run."""

    lease: Lease
    args: str
    policy: Policy
    tags: str
    again_of: str | None
    created_at: datetime
    parent_id: str | None = None
    stage: str | None = None
    segment: str | None = None
    depends_on: str | None = None
    traceparent: str | None = None
    unreadable: str | None = None
    """The stored values that can't be decoded, and why. Such a run fails without being executed."""


def claim_runs(
    tx: Transaction,
    queues: Sequence[str],
    *,
    jobs: Sequence[str],
    holder: str,
    limit: int,
    lease_for: timedelta,
    kill_grace: timedelta,
    oldest_first: bool = False,
    room: Mapping[str, int] | None = None,
    scan_from: Mapping[str, Position] | None = None,
) -> list[ClaimedRun]:
    """Claim up to `limit` runs: remove each from `ready` and insert our lease.

    `room` limits the number of runs per queue, and `scan_from` sets where the scan of a queue begins: see `ready.take`.
    """
    taken = ready.take(tx, queues, jobs=jobs, limit=limit, oldest_first=oldest_first, room=room, scan_from=scan_from)
    if not taken:
        return []
    unknown = [one.entry.run_id for one in taken if one.submitted is None]
    submitted = {row["id"]: row for row in tx.all("get_submissions", ids=unknown)} if unknown else {}
    taken = _with_stored_key(tx, taken, submitted, pause=lease_for)
    claims = [
        _start(
            one.entry,
            one.submitted or submitted[one.entry.run_id],
            holder=holder,
            now=tx.now,
            lease_for=lease_for,
            kill_grace=kill_grace,
        )
        for one in taken
    ]
    entries = {one.entry.run_id: one.entry for one in taken}
    rated = [(entries[claimed.lease.run_id], claimed.policy) for claimed in claims if claimed.policy.rate is not None]
    decision = rates.decide(tx, rated) if rated else None
    if decision is not None and decision.later:
        _start_later(tx, claims, entries, decision)
        claims = [claimed for claimed in claims if claimed.lease.run_id not in decision.later]
    limits = {
        one.entry.queue: concurrency
        for one in taken
        if (concurrency := submitted.get(one.entry.run_id, {}).get("concurrency", one.concurrency)) is not None
    }
    permits: dict[str, int] = {}
    no_permit: list[QueueEntry] = []
    if limits:
        permits, no_permit = number_permits(tx, [entries[claimed.lease.run_id] for claimed in claims], limits)
        claims = _with_permits(claims, permits, no_permit)
    inserted: set[str] = set()
    if claims:
        rows = [_row(claimed.lease) for claimed in claims]
        inserted = {row["run_id"] for row in tx.all("insert_leases", rows=rows, holder=holder, now=tx.now)}
    if decision is not None:
        decision.save(tx, inserted)
    if len(inserted) < len(claims):
        refused = [entries[claimed.lease.run_id] for claimed in claims if claimed.lease.run_id not in inserted]
        no_permit += _wait_again(tx, refused, permits, pause=lease_for)
    if no_permit:
        turns = {} if decision is None else decision.turns
        ready.put(tx, [one.changed(rate_turn=turns.get(one.run_id)) for one in no_permit])
    if len(inserted) < len(taken) == limit:
        tx.notify(*{one.entry.queue for one in taken})  # the worker has free capacity; other ready runs may start
    return [claimed for claimed in claims if claimed.lease.run_id in inserted]


def _with_stored_key(
    tx: Transaction, taken: list[Taken], submitted: Mapping[str, Row], *, pause: timedelta
) -> list[Taken]:
    """Return the runs whose key and key limit in `ready` match those in `runs`.

    They differ only if somebody has edited a row. The database would refuse the lease of such a run and fail the
    whole batch, so the run goes back to `waits`.
    """
    stored = {one.entry.run_id: one.submitted or submitted[one.entry.run_id] for one in taken}
    mismatched = [
        one.entry.changed(key=row["own_key"], key_limit=row["own_key_limit"], key_number=1)
        for one, row in ((one, stored[one.entry.run_id]) for one in taken)
        if row["own_key"] != one.entry.key
        or row["own_key_limit"] != one.entry.key_limit
        or not 1 <= one.entry.key_number <= one.entry.key_limit
    ]
    if not mismatched:
        return taken
    _wait_for_key(tx, mismatched, pause=pause, reason="its row in ready had another key")
    waiting = {entry.run_id for entry in mismatched}
    return [one for one in taken if one.entry.run_id not in waiting]


def _start(
    entry: QueueEntry, submitted: Row, *, holder: str, now: datetime, lease_for: timedelta, kill_grace: timedelta
) -> ClaimedRun:
    reading = json_text.Reading(submitted)
    policy = reading.column("policy", load_policy, instead=lambda _: UNREADABLE_POLICY)
    if submitted["tags"] != "{}":
        reading.column("tags", tags_of, instead=lambda _: {})
    reading.column("depends_on", read_depends_on, instead=lambda _: ())
    deadline_at = policy.deadline(now)
    lease = Lease(
        entry=entry.claimed(),
        holder=holder,
        started_at=now,
        expires_at=lease_expiry(now, deadline_at, lease_for=lease_for, kill_grace=kill_grace),
        deadline_at=deadline_at,
    )
    return ClaimedRun(
        lease=lease,
        args=submitted["args"],
        policy=policy,
        tags=submitted["tags"],
        again_of=submitted["again_of"],
        created_at=submitted["created_at"],
        parent_id=submitted["parent_id"],
        stage=submitted["stage"],
        segment=submitted["segment"],
        depends_on=submitted["depends_on"],
        traceparent=submitted["traceparent"],
        unreadable=reading.unreadable,
    )


def _row(lease: Lease) -> Row:
    return lease.entry.row() | {
        "expires_at": lease.expires_at,
        "deadline_at": lease.deadline_at,
        "permit": lease.permit,
    }


def _with_permits(
    claims: Sequence[ClaimedRun], permits: Mapping[str, int], no_permit: Sequence[QueueEntry]
) -> list[ClaimedRun]:
    without = {entry.run_id for entry in no_permit}
    return [
        replace(claimed, lease=replace(claimed.lease, permit=permits.get(claimed.lease.run_id)))
        for claimed in claims
        if claimed.lease.run_id not in without
    ]


def _start_later(
    tx: Transaction, claims: Sequence[ClaimedRun], entries: Mapping[str, QueueEntry], decision: rates.RateDecision
) -> None:
    """Move runs that exceed their rate to `waits` until their turn, and open their key locks."""
    delayed = [claimed for claimed in claims if claimed.lease.run_id in decision.later]
    open_key_locks(tx, [entries[claimed.lease.run_id] for claimed in delayed if claimed.policy.key_order == "due"])
    later = [(entries[claimed.lease.run_id], decision.later[claimed.lease.run_id]) for claimed in delayed]
    add_waiting(
        tx,
        [
            Wait(entry=entry.changed(rate_turn=turn.turn), due_at=turn.due_at, reason=turn.reason)
            for entry, turn in later
        ],
    )


def _wait_again(
    tx: Transaction, entries: Sequence[QueueEntry], permits: Mapping[str, int], *, pause: timedelta
) -> list[QueueEntry]:
    """Move runs to `waits` if another lease holds their key; return the runs that only lost the race for a permit.

    Another lease holds the key only if someone inserted it by hand.
    """
    rows = [{"run_key": entry.key, "key_number": entry.key_number} for entry in entries if entry.key is not None]
    held_keys = (
        {(row["run_key"], row["key_number"]) for row in tx.all("find_key_leases", rows=rows)}
        if rows and permits
        else set()
    )
    no_permit = [one for one in entries if one.run_id in permits and (one.key, one.key_number) not in held_keys]
    reason = "another lease already holds its key"
    _wait_for_key(tx, [one for one in entries if one not in no_permit], pause=pause, reason=reason)
    return no_permit


def _wait_for_key(tx: Transaction, entries: Sequence[QueueEntry], *, pause: timedelta, reason: str) -> None:
    """Open the key locks of these runs and move the runs to `waits`."""
    open_key_locks(tx, entries)
    add_waiting(tx, [Wait(entry=entry, due_at=tx.now + pause, reason=reason) for entry in entries])
