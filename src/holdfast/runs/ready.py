"""Ready: runs that may be claimed now.

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
    """A run that was ready and is now ours to move; with what was submitted, where the dialect says both at once."""

    ticket: QueueEntry
    submitted: Row | None
    places: int | None
    """How many runs of its queue may run at once, if that is limited and the dialect says so here."""


def put(tx: Transaction, tickets: Iterable[QueueEntry]) -> None:
    """Let these runs be claimed, and wake who serves their queues."""
    tickets = list(tickets)
    if tickets:
        tx.put("insert_ready", rows=[ticket.row() for ticket in tickets])
        tx.notify(*{ticket.queue for ticket in tickets})


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
    """Remove up to `limit` runs of these jobs: the first queue first, then by priority, then by age.

    `oldest_first` ignores priority, so that no run starves behind higher ones.
    `room` says how many of a queue at most, where it is fewer.
    `scan_from` says per queue from where on to look by priority. While an old snapshot is open somewhere (a dump, a
    long report), rows that were taken leave dead rows behind, and a scan from the start reads them all each time.
    """
    taken: list[Taken] = []
    for queue, most in _most(queues, limit, room):
        if len(taken) == limit:
            break
        most = min(most, limit - len(taken))
        if oldest_first:
            rows = tx.all("take_oldest_ready", queue=queue, jobs=list(jobs), limit=most)
            taken += sorted(map(_taken, rows), key=lambda one: one.ticket.run_id)
        else:
            rank, run_id = (scan_from or {}).get(queue, LEFT)
            rows = tx.all("take_ready", queue=queue, jobs=list(jobs), limit=most, floor_rank=rank, floor_id=run_id)
            taken += sorted(map(_taken, rows), key=lambda one: position(one.ticket))
    return taken


def _most(queues: Sequence[str], limit: int, room: Mapping[str, int] | None) -> list[tuple[str, int]]:
    """The queues that there is room for, each with how many of it."""
    most = [(queue, (room or {}).get(queue, limit)) for queue in queues]
    return [(queue, number) for queue, number in most if number > 0]


def _taken(row: Row) -> Taken:
    return Taken(QueueEntry.of(row), row if "args" in row else None, row.get("concurrency"))


def position(ticket: QueueEntry) -> Position:
    """Where a run stands in its queue."""
    return ticket.rank, ticket.run_id


def remove(tx: Transaction, run_ids: Sequence[str]) -> list[QueueEntry]:
    """Those of these runs that were ready and are now ours to move."""
    return [QueueEntry.of(row) for row in tx.all("delete_ready", ids=list(run_ids))]
