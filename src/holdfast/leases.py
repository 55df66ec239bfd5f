"""Leases: who runs what, until when.

    ready ──claim──▶ leases ──finish──▶ outcomes
                       │ renew: the same worker, still alive
                       └ expired: an orchestrator marks it, waits for a renewal, then takes it away

The holder of a lease is its owner, expired or not, until the row is gone.

A claim is a start: it takes only as many runs as the worker has free places. Every write for a running run carries
`run_id + attempt + holder`; if that does not touch exactly one row, the lease is lost and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from holdfast import codec, events, holds, places, policies, rates, ready, waits
from holdfast.errors import LeaseLost
from holdfast.events import Event
from holdfast.policies import Policy
from holdfast.ready import Position, Taken
from holdfast.store.transaction import Row, Transaction
from holdfast.submissions import needed_of, tags_of
from holdfast.tickets import Ticket
from holdfast.waits import Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    ticket: Ticket
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
        return cls(
            ticket=Ticket.of(row),
            holder=row["holder"],
            started_at=row["started_at"],
            expires_at=row["expires_at"],
            deadline_at=row["deadline_at"],
            cancel_requested_at=row["cancel_requested_at"],
            cancel_reason=row["cancel_reason"],
            place=row["place"],
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """Our lease, extended; and whether someone asked the run to stop."""

    run_id: str
    attempt: int
    cancelled: bool
    reason: str | None


def claim(
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
    floors: Mapping[str, Position] | None = None,
) -> list[Claim]:
    """Start up to `limit` runs: each leaves `ready` and stands under our lease. `room` is for how many of a queue."""
    if oldest_first:
        taken = ready.take_oldest(tx, queues, jobs=jobs, limit=limit, room=room)
    else:
        taken = ready.take(tx, queues, jobs=jobs, limit=limit, room=room, floors=floors)
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
    judgement = rates.judge(tx, [(tickets[claim.lease.run_id], claim.policy) for claim in claims])
    _start_later(tx, claims, tickets, judgement)
    claims = [claim for claim in claims if claim.lease.run_id not in judgement.later]
    limits = {
        one.ticket.queue: limit_of_queue
        for one in taken
        if (limit_of_queue := submitted.get(one.ticket.run_id, {}).get("concurrency", one.places)) is not None
    }
    placed, crowded = places.number(tx, [tickets[claim.lease.run_id] for claim in claims], limits)
    claims = _placed(claims, placed, crowded) if limits else claims
    inserted: set[str] = set()
    if claims:
        rows = [_row(claim.lease) for claim in claims]
        inserted = {row["run_id"] for row in tx.all("insert_leases", rows=rows, holder=holder, now=tx.now)}
    judgement.keep(tx, inserted)
    if len(inserted) < len(claims):
        beaten = [tickets[claim.lease.run_id] for claim in claims if claim.lease.run_id not in inserted]
        crowded += _wait_again(tx, beaten, placed, pause=lease_for)
    if crowded:
        ready.put(tx, [one.changed(reserved=judgement.turns.get(one.run_id)) for one in crowded])
    if len(inserted) < len(taken) == limit:
        tx.ring(*{one.ticket.queue for one in taken})  # we wanted more, and there may be some that can start
    return [claim for claim in claims if claim.lease.run_id in inserted]


def renew(
    tx: Transaction, held: Iterable[Lease], *, holder: str, lease_for: timedelta, kill_grace: timedelta
) -> list[Renewal]:
    """Extend our own leases from now; those that do not come back are lost."""
    rows = [
        {
            "run_id": lease.run_id,
            "attempt": lease.attempt,
            "expires_at": expiry(tx.now, lease.deadline_at, lease_for=lease_for, kill_grace=kill_grace),
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


def guard(tx: Transaction, leases: Iterable[Lease], *, holder: str) -> set[tuple[str, int]]:
    """Which of these leases are still ours; no one can take them before this transaction ends."""
    rows = sorted(
        ({"run_id": lease.run_id, "attempt": lease.attempt} for lease in leases),
        key=lambda row: str(row["run_id"]),
    )
    return {(row["run_id"], row["attempt"]) for row in tx.all("guard_leases", rows=rows, holder=holder)}


def require(tx: Transaction, lease: Lease) -> None:
    """Raise LeaseLost unless this lease is still ours."""
    if not guard(tx, [lease], holder=lease.holder):
        raise LeaseLost(f"run {lease.run_id}: attempt {lease.attempt} no longer holds its lease")


def require_attempt(tx: Transaction, run_id: str, attempt: int) -> None:
    """Raise LeaseLost unless this attempt still holds its run; no one can take it before this transaction ends."""
    rows = [{"run_id": run_id, "attempt": attempt}]
    found = tx.one("find_attempts", ids=[run_id])
    if found is None or not tx.all("guard_leases", rows=rows, holder=found["holder"]):
        raise LeaseLost(f"run {run_id}: attempt {attempt} no longer holds its lease")


def give_up(tx: Transaction, leases: Iterable[Lease], *, holder: str) -> dict[str, Lease]:
    """Remove our own leases; by run, those that were still ours and must now be put somewhere else."""
    given = {lease.run_id: lease for lease in leases}
    rows = [{"run_id": lease.run_id, "attempt": lease.attempt} for lease in given.values()]
    tx.ring(*{lease.ticket.queue for lease in given.values() if lease.place is not None})
    return {
        row["run_id"]: _asked(given[row["run_id"]], row) for row in tx.all("delete_leases", rows=rows, holder=holder)
    }


def _asked(lease: Lease, row: Row) -> Lease:
    """The lease as we know it, and whether someone asked its run to stop: all else is as we wrote it."""
    if row["cancel_requested_at"] is None:
        return lease
    return replace(lease, cancel_requested_at=row["cancel_requested_at"], cancel_reason=row["cancel_reason"])


def of_holder(tx: Transaction, holder: str) -> list[Lease]:
    return [Lease.of(row) for row in tx.all("find_leases_of", holder=holder)]


def marks(tx: Transaction, holder: str) -> dict[tuple[str, int], datetime | None]:
    """For each run and attempt that this worker holds: when an orchestrator saw the lease expired, if one did."""
    return {(row["run_id"], row["attempt"]): row["expired_seen_at"] for row in tx.all("find_leases_of", holder=holder)}


def expiry(now: datetime, deadline_at: datetime | None, *, lease_for: timedelta, kill_grace: timedelta) -> datetime:
    """A lease never outlives the run's deadline by more than it takes to kill it and to write that down."""
    if deadline_at is None:
        return now + lease_for
    # With no time to write it down, whoever looks for expired leases would end the run while we do.
    return min(now + lease_for, deadline_at + kill_grace + lease_for / 3)


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
    _conflict(tx, strange, pause=pause, because="its row in ready had another key")
    waiting = {ticket.run_id for ticket in strange}
    return [one for one in taken if one.ticket.run_id not in waiting]


def _start(
    ticket: Ticket, submitted: Row, *, holder: str, now: datetime, lease_for: timedelta, kill_grace: timedelta
) -> Claim:
    reading = codec.Reading(submitted)
    policy = reading.column("policy", policies.load, instead=lambda _: policies.UNREADABLE)
    if submitted["tags"] != "{}":
        reading.column("tags", tags_of, instead=lambda _: {})
    reading.column("needed", needed_of, instead=lambda _: ())
    deadline_at = policy.deadline(now)
    lease = Lease(
        ticket=ticket.claimed(),
        holder=holder,
        started_at=now,
        expires_at=expiry(now, deadline_at, lease_for=lease_for, kill_grace=kill_grace),
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


def _placed(claims: Sequence[Claim], placed: Mapping[str, int], crowded: Sequence[Ticket]) -> list[Claim]:
    without = {ticket.run_id for ticket in crowded}
    return [
        replace(claim, lease=replace(claim.lease, place=placed.get(claim.lease.run_id)))
        for claim in claims
        if claim.lease.run_id not in without
    ]


def _start_later(
    tx: Transaction, claims: Sequence[Claim], tickets: Mapping[str, Ticket], judgement: rates.Judgement
) -> None:
    """Runs that their rates hold up wait for their turns, and let their keys go."""
    held_up = [claim for claim in claims if claim.lease.run_id in judgement.later]
    if not held_up:
        return
    holds.open_those_of(tx, [tickets[claim.lease.run_id] for claim in held_up if claim.policy.key_order == "due"])
    later = [(tickets[claim.lease.run_id], judgement.later[claim.lease.run_id]) for claim in held_up]
    waits.put(
        tx,
        [
            Wait(ticket=ticket.changed(reserved=turn.turn), due_at=turn.due_at, because=turn.because)
            for ticket, turn in later
        ],
    )


def _wait_again(
    tx: Transaction, tickets: Sequence[Ticket], placed: Mapping[str, int], *, pause: timedelta
) -> list[Ticket]:
    """A lease stands against these runs: one on their key, which someone wrote by hand, until it may be gone. Those who
    only lost the race for a place in their queue are given back."""
    rows = [{"key": ticket.key, "number": ticket.number} for ticket in tickets if ticket.key is not None]
    keyed = {(row["key"], row["number"]) for row in tx.all("find_key_leases", rows=rows)} if rows and placed else set()
    late = [one for one in tickets if one.run_id in placed and (one.key, one.number) not in keyed]
    because = "another lease already holds its key"
    _conflict(tx, [one for one in tickets if one not in late], pause=pause, because=because)
    return late


def _conflict(tx: Transaction, tickets: Sequence[Ticket], *, pause: timedelta, because: str) -> None:
    """Let these runs wait for their turn once more, and record why."""
    events.record(
        tx,
        [Event(run_id=ticket.run_id, kind="CLAIM_CONFLICT", data={"key": ticket.key}) for ticket in tickets],
    )
    for _ in tickets:
        tx.count("claim_conflict")
    holds.open_those_of(tx, tickets)
    waits.put(tx, [Wait(ticket=ticket, due_at=tx.now + pause, because=because) for ticket in tickets])
