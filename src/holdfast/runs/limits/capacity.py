"""Capacity: a bounded queue limits its unfinished runs. Each of them has a row in `holdfast_queue_capacity`.

There is no counter. A submission locks the rows of its bounded queues, counts the capacity in use, and inserts its own
rows or none. A trigger deletes the row of a run when its outcome is written, without a lock on the queue. So the limit
is exact, and finishing a run never waits for a submitter. `*` is the limit over all queues. Builds use no capacity.
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
    """A new run that uses capacity of its queue. Stages, segments and children are not refusable."""

    run_id: str
    queue: str
    refusable: bool = True


def bounds(tx: Transaction, requests: Sequence[CapacityRequest]) -> dict[str, int]:
    """Return the capacity of each bounded queue of these runs. If a run may be refused, lock these queues."""
    names = sorted({EVERY_QUEUE, *(request.queue for request in requests)})
    if any(request.refusable for request in requests):
        rows = tx.all("lock_bounds", queues=names)
        if rows:
            require_latest(tx, f"to submit to the bounded queue {rows[0]['name']}")
    else:
        rows = tx.all("find_bounds", queues=names)
    tx.bounded.difference_update(names)
    tx.bounded.update(row["name"] for row in rows)
    return {row["name"]: row["max_queued"] for row in rows}


def refuse(tx: Transaction, bounded: Mapping[str, int], requests: Sequence[CapacityRequest]) -> dict[str, QueueFull]:
    """Return an error for each of these runs whose queue has no capacity left. Earlier runs take capacity first."""
    wanted = [request for request in requests if _names(request, bounded)]
    if not wanted:
        return {}
    taken = _count(tx, bounded)
    refused: dict[str, QueueFull] = {}
    drained: dict[str, timedelta] = {}
    for request in wanted:
        names = _names(request, bounded)
        full = next((name for name in names if taken[name] >= bounded[name]), None)
        if full is None or not request.refusable:
            for name in names:
                taken[name] += 1
            continue
        if full not in drained:
            drained[full] = _retry_after(tx, full, over=taken[full] + 1 - bounded[full])
        refused[request.run_id] = QueueFull(full, limit=bounded[full], queued=taken[full], retry_after=drained[full])
    return refused


def take(tx: Transaction, bounded: Mapping[str, int], requests: Iterable[CapacityRequest]) -> None:
    """Insert the capacity rows of new runs in bounded queues."""
    rows = [{"run_id": one.run_id, "queue": one.queue} for one in requests if _names(one, bounded)]
    if rows:
        tx.put("insert_capacity", rows=rows)


def fill(tx: Transaction, queue: str, *, after: str = "") -> str | None:
    """Insert capacity rows for a page of the existing runs of a queue (`*`: all queues) that becomes bounded.

    Return the last run of the page if there may be more. A run that changes its state meanwhile, or whose submission
    is not committed yet, may be missed; it is then not counted.
    """
    page = [row["run_id"] for row in tx.all("find_without_capacity", queue=queue, after=after, limit=PAGE)]
    if page:
        tx.put("insert_capacity_of", ids=page)
    return page[-1] if len(page) == PAGE else None


def clear(tx: Transaction) -> None:
    """Delete the capacity rows of queues that are no longer bounded."""
    tx.put("delete_unbounded_capacity")


def _names(request: CapacityRequest, bounded: Mapping[str, int]) -> list[str]:
    return [name for name in (request.queue, EVERY_QUEUE) if name in bounded]


def _count(tx: Transaction, bounded: Mapping[str, int]) -> dict[str, int]:
    rows = tx.all("count_all_capacity") if EVERY_QUEUE in bounded else tx.all("count_capacity", queues=sorted(bounded))
    counts = {row["queue"]: row["used"] for row in rows}
    return {name: sum(counts.values()) if name == EVERY_QUEUE else counts.get(name, 0) for name in bounded}


def _retry_after(tx: Transaction, queue: str, *, over: int) -> timedelta:
    """Estimate, from the last minutes, how long the queue takes to end `over` runs."""
    found = tx.one("find_drain", queue=queue, since=tx.now - RECENT)
    if found is None or not found["ended"] or found["oldest_at"] is None:
        return UNKNOWN
    each: timedelta = (tx.now - found["oldest_at"]) / found["ended"]
    return min(max(each * over, SOONEST), LATEST)
