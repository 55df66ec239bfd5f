"""Claim: take runs from `ready` and lease them to a worker, in one transaction.

ready ──claim──▶ leases             the lease is inserted first; only what was inserted leaves `ready`
      └─conflict─▶ waits            another lease holds the key, or a limit holds the run back
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
from holdfast.runs.submission import needed_of, tags_of
from holdfast.runs.waiting import Wait, add_waiting
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.values.policies import UNREADABLE_POLICY, Policy, load_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A lease that was just made, with what was submitted."""

    lease: Lease
    args: str
    policy: Policy
    tags: str
    again_of: str | None
    created_at: datetime
    parent_id: str | None = None
    stage: str | None = None
    segment: str | None = None
    needed: str | None = None
    trace: str | None = None
    unreadable: str | None = None
    """Which stored values can't be decoded, and why; such a run is not executed, it fails."""


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
) -> list[Claim]:
    """Start up to `limit` runs: each leaves `ready` and gets our lease.

    `room` says how many of a queue at most, `scan_from` from where on to look; see `ready.take`.
    """
    taken = ready.take(tx, queues, jobs=jobs, limit=limit, oldest_first=oldest_first, room=room, scan_from=scan_from)
    if not taken:
        return []
    unknown = [one.ticket.run_id for one in taken if one.submitted is None]
    submitted = {row["id"]: row for row in tx.all("get_submissions", ids=unknown)} if unknown else {}
    taken = _rightful(tx, taken, submitted, pause=lease_for)
    claims = [
        _start(
            one.ticket,
            one.submitted or submitted[one.ticket.run_id],
            holder=holder,
            now=tx.now,
            lease_for=lease_for,
            kill_grace=kill_grace,
        )
        for one in taken
    ]
    tickets = {one.ticket.run_id: one.ticket for one in taken}
    rated = [(tickets[claim.lease.run_id], claim.policy) for claim in claims if claim.policy.rate is not None]
    judgement = rates.judge(tx, rated) if rated else None
    if judgement is not None and judgement.later:
        _start_later(tx, claims, tickets, judgement)
        claims = [claim for claim in claims if claim.lease.run_id not in judgement.later]
    limits = {
        one.ticket.queue: limit_of_queue
        for one in taken
        if (limit_of_queue := submitted.get(one.ticket.run_id, {}).get("concurrency", one.places)) is not None
    }
    placed: dict[str, int] = {}
    crowded: list[QueueEntry] = []
    if limits:
        placed, crowded = number_permits(tx, [tickets[claim.lease.run_id] for claim in claims], limits)
        claims = _placed(claims, placed, crowded)
    inserted: set[str] = set()
    if claims:
        rows = [_row(claim.lease) for claim in claims]
        inserted = {row["run_id"] for row in tx.all("insert_leases", rows=rows, holder=holder, now=tx.now)}
    if judgement is not None:
        judgement.keep(tx, inserted)
    if len(inserted) < len(claims):
        beaten = [tickets[claim.lease.run_id] for claim in claims if claim.lease.run_id not in inserted]
        crowded += _wait_again(tx, beaten, placed, pause=lease_for)
    if crowded:
        turns = {} if judgement is None else judgement.turns
        ready.put(tx, [one.changed(reserved=turns.get(one.run_id)) for one in crowded])
    if len(inserted) < len(taken) == limit:
        tx.notify(*{one.ticket.queue for one in taken})  # we wanted more, and there may be some that can start
    return [claim for claim in claims if claim.lease.run_id in inserted]


def _rightful(tx: Transaction, taken: list[Taken], submitted: Mapping[str, Row], *, pause: timedelta) -> list[Taken]:
    """Those that were ready with the key and the key limit of their runs: the database refuses any other lease.

    One that someone changed by hand must not keep the others from starting: it waits for its turn.
    """
    owns = {one.ticket.run_id: one.submitted or submitted[one.ticket.run_id] for one in taken}
    strange = [
        one.ticket.changed(key=own["own_key"], key_limit=own["own_key_limit"], number=1)
        for one, own in ((one, owns[one.ticket.run_id]) for one in taken)
        if own["own_key"] != one.ticket.key
        or own["own_key_limit"] != one.ticket.key_limit
        or not 1 <= one.ticket.number <= one.ticket.key_limit
    ]
    if not strange:
        return taken
    _wait_for_turn(tx, strange, pause=pause, because="its row in ready had another key")
    waiting = {ticket.run_id for ticket in strange}
    return [one for one in taken if one.ticket.run_id not in waiting]


def _start(
    ticket: QueueEntry, submitted: Row, *, holder: str, now: datetime, lease_for: timedelta, kill_grace: timedelta
) -> Claim:
    reading = json_text.Reading(submitted)
    policy = reading.column("policy", load_policy, instead=lambda _: UNREADABLE_POLICY)
    if submitted["tags"] != "{}":
        reading.column("tags", tags_of, instead=lambda _: {})
    reading.column("needed", needed_of, instead=lambda _: ())
    deadline_at = policy.deadline(now)
    lease = Lease(
        ticket=ticket.claimed(),
        holder=holder,
        started_at=now,
        expires_at=lease_expiry(now, deadline_at, lease_for=lease_for, kill_grace=kill_grace),
        deadline_at=deadline_at,
    )
    return Claim(
        lease=lease,
        args=submitted["args"],
        policy=policy,
        tags=submitted["tags"],
        again_of=submitted["again_of"],
        created_at=submitted["created_at"],
        parent_id=submitted["parent_id"],
        stage=submitted["stage"],
        segment=submitted["segment"],
        needed=submitted["needed"],
        trace=submitted["trace"],
        unreadable=reading.unreadable,
    )


def _row(lease: Lease) -> Row:
    return lease.ticket.row() | {
        "expires_at": lease.expires_at,
        "deadline_at": lease.deadline_at,
        "place": lease.place,
    }


def _placed(claims: Sequence[Claim], placed: Mapping[str, int], crowded: Sequence[QueueEntry]) -> list[Claim]:
    without = {ticket.run_id for ticket in crowded}
    return [
        replace(claim, lease=replace(claim.lease, place=placed.get(claim.lease.run_id)))
        for claim in claims
        if claim.lease.run_id not in without
    ]


def _start_later(
    tx: Transaction, claims: Sequence[Claim], tickets: Mapping[str, QueueEntry], judgement: rates.Judgement
) -> None:
    """Runs that their rates hold up wait for their turns, and let their keys go."""
    held_up = [claim for claim in claims if claim.lease.run_id in judgement.later]
    open_key_locks(tx, [tickets[claim.lease.run_id] for claim in held_up if claim.policy.key_order == "due"])
    later = [(tickets[claim.lease.run_id], judgement.later[claim.lease.run_id]) for claim in held_up]
    add_waiting(
        tx,
        [
            Wait(ticket=ticket.changed(reserved=turn.turn), due_at=turn.due_at, because=turn.because)
            for ticket, turn in later
        ],
    )


def _wait_again(
    tx: Transaction, tickets: Sequence[QueueEntry], placed: Mapping[str, int], *, pause: timedelta
) -> list[QueueEntry]:
    """Let runs whose key has another lease, which someone inserted by hand, wait until that may be gone. Return those
    that only lost the race for a permit of their queue."""
    rows = [{"run_key": ticket.key, "number": ticket.number} for ticket in tickets if ticket.key is not None]
    keyed = (
        {(row["run_key"], row["number"]) for row in tx.all("find_key_leases", rows=rows)} if rows and placed else set()
    )
    late = [one for one in tickets if one.run_id in placed and (one.key, one.number) not in keyed]
    because = "another lease already holds its key"
    _wait_for_turn(tx, [one for one in tickets if one not in late], pause=pause, because=because)
    return late


def _wait_for_turn(tx: Transaction, tickets: Sequence[QueueEntry], *, pause: timedelta, because: str) -> None:
    """Let these runs wait for their turn once more."""
    open_key_locks(tx, tickets)
    add_waiting(tx, [Wait(ticket=ticket, due_at=tx.now + pause, because=because) for ticket in tickets])
