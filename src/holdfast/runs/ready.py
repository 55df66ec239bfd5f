"""Ready: runs that a worker may claim now.

waits ──orchestrator──▶ ready ──claim──▶ leases
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.runs.queue_entry import QueueEntry
from holdfast.store.transaction import Row, Transaction

Position: TypeAlias = tuple[int, str]
LEFT: Position = (-(2**31), "")


@dataclass(frozen=True, slots=True)
class Taken:
    """A run that was removed from `ready` in this transaction."""

    entry: QueueEntry
    submitted: Row | None
    """The stored submission, if the dialect returns it with the entry."""
    concurrency: int | None
    """The concurrency limit of its queue, if there is one and the dialect returns it with the entry."""


def put(tx: Transaction, entries: Iterable[QueueEntry]) -> None:
    """Make these runs ready, and wake the workers of their queues."""
    entries = list(entries)
    if entries:
        tx.put("insert_ready", rows=[entry.row() for entry in entries])
        tx.notify(*{entry.queue for entry in entries})


def take(
    tx: Transaction,
    queues: Sequence[str],
    *,
    jobs: Sequence[str],
    limit: int,
    oldest_first: bool = False,
    room: Mapping[str, int] | None = None,
    scan_from: Mapping[str, Position] | None = None,
) -> list[Taken]:
    """Remove up to `limit` runs of these jobs, in the order of `queues`, then by priority, then by age.

    `oldest_first` ignores priority, so that runs of low priority do not starve.
    `room` limits the number of runs per queue.
    `scan_from` sets, per queue, the position at which the scan by priority begins. A long-lived database snapshot (a
    dump, a long report) keeps removed rows as dead rows, and a scan from the start would read all of them each time.
    """
    taken: list[Taken] = []
    for queue, most in _most(queues, limit, room):
        if len(taken) == limit:
            break
        most = min(most, limit - len(taken))
        if oldest_first:
            rows = tx.all("take_oldest_ready", queue=queue, jobs=list(jobs), limit=most)
            taken += sorted(map(_taken, rows), key=lambda one: one.entry.run_id)
        else:
            rank, run_id = (scan_from or {}).get(queue, LEFT)
            rows = tx.all("take_ready", queue=queue, jobs=list(jobs), limit=most, from_rank=rank, from_id=run_id)
            taken += sorted(map(_taken, rows), key=lambda one: position(one.entry))
    return taken


def _most(queues: Sequence[str], limit: int, room: Mapping[str, int] | None) -> list[tuple[str, int]]:
    """Return the queues with room, each with the maximum number of runs to take."""
    most = [(queue, (room or {}).get(queue, limit)) for queue in queues]
    return [(queue, number) for queue, number in most if number > 0]


def _taken(row: Row) -> Taken:
    return Taken(QueueEntry.of(row), row if "args" in row else None, row.get("concurrency"))


def position(entry: QueueEntry) -> Position:
    """Return the position of a run in its queue."""
    return entry.rank, entry.run_id


def remove(tx: Transaction, run_ids: Sequence[str]) -> list[QueueEntry]:
    """Remove these runs from `ready` and return those that were there. The caller must move them."""
    return [QueueEntry.of(row) for row in tx.all("delete_ready", ids=list(run_ids))]
