"""Capacity: in a bounded queue each run that has not ended has a seat.

There is no counter: a submission holds the rows of its bounded queues still, counts the seats, and takes as many as it
needs or none; an outcome gives its run's seat back (a trigger does it) without touching the queue. So the bound is
exact, and no finish waits for a submitter. `*` is the bound over all queues. Builds need no seat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from holdfast.store.caller_transaction import require_latest
from holdfast.store.transaction import Transaction
from holdfast.support.errors import QueueFull
from holdfast.values.queues import EVERY_QUEUE

PAGE = 1000
RECENT = timedelta(minutes=5)
SOONEST, LATEST, UNKNOWN = timedelta(seconds=1), timedelta(hours=1), timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class CapacityRequest:
    """What a run asks for. One that the engine itself submits is never refused."""

    run_id: str
    queue: str
    refusable: bool = True


def bounds(tx: Transaction, seats: Sequence[CapacityRequest]) -> dict[str, int]:
    """The bounds of these runs' queues. While a run may be refused, no one else can take a seat there."""
    names = sorted({EVERY_QUEUE, *(seat.queue for seat in seats)})
    if any(seat.refusable for seat in seats):
        rows = tx.all("lock_bounds", queues=names)
        if rows:
            require_latest(tx, f"to submit to the bounded queue {rows[0]['name']}")
    else:
        rows = tx.all("find_bounds", queues=names)
    tx.bounded.difference_update(names)
    tx.bounded.update(row["name"] for row in rows)
    return {row["name"]: row["max_queued"] for row in rows}


def refuse(tx: Transaction, bounded: Mapping[str, int], seats: Sequence[CapacityRequest]) -> dict[str, QueueFull]:
    """Of runs that ask for a seat, in this order, those for which none is left."""
    wanted = [seat for seat in seats if _names(seat, bounded)]
    if not wanted:
        return {}
    taken = _count(tx, bounded)
    refused: dict[str, QueueFull] = {}
    drained: dict[str, timedelta] = {}
    for seat in wanted:
        names = _names(seat, bounded)
        full = next((name for name in names if taken[name] >= bounded[name]), None)
        if full is None or not seat.refusable:
            for name in names:
                taken[name] += 1
            continue
        if full not in drained:
            drained[full] = _retry_after(tx, full, over=taken[full] + 1 - bounded[full])
        refused[seat.run_id] = QueueFull(full, limit=bounded[full], queued=taken[full], retry_after=drained[full])
    return refused


def take(tx: Transaction, bounded: Mapping[str, int], seats: Iterable[CapacityRequest]) -> None:
    """Seat new runs of bounded queues."""
    rows = [{"run_id": seat.run_id, "queue": seat.queue} for seat in seats if _names(seat, bounded)]
    if rows:
        tx.put("insert_seats", rows=rows)


def fill(tx: Transaction, queue: str, *, after: str = "") -> str | None:
    """Seat some of the runs that a queue (or every one) has while it becomes bounded; the last one, if there may be
    more after it.

    A run that moves in this very moment, or whose submission was not committed yet, may be missed: it is not counted.
    """
    page = [row["run_id"] for row in tx.all("find_unseated", queue=queue, after=after, limit=PAGE)]
    if page:
        tx.put("insert_seats_of", ids=page)
    return page[-1] if len(page) == PAGE else None


def clear(tx: Transaction) -> None:
    """Remove the seats of queues that are bounded no more."""
    tx.put("delete_unbounded_seats")


def _names(seat: CapacityRequest, bounded: Mapping[str, int]) -> list[str]:
    return [name for name in (seat.queue, EVERY_QUEUE) if name in bounded]


def _count(tx: Transaction, bounded: Mapping[str, int]) -> dict[str, int]:
    rows = tx.all("count_all_seats") if EVERY_QUEUE in bounded else tx.all("count_seats", queues=sorted(bounded))
    counts = {row["queue"]: row["seats"] for row in rows}
    return {name: sum(counts.values()) if name == EVERY_QUEUE else counts.get(name, 0) for name in bounded}


def _retry_after(tx: Transaction, queue: str, *, over: int) -> timedelta:
    """How long the queue takes to end so many runs, as it went in the last minutes."""
    found = tx.one("find_drain", queue=queue, since=tx.now - RECENT)
    if found is None or not found["ended"] or found["oldest_at"] is None:
        return UNKNOWN
    each: timedelta = (tx.now - found["oldest_at"]) / found["ended"]
    return min(max(each * over, SOONEST), LATEST)
