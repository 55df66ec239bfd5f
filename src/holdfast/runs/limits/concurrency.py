"""Concurrency: how many runs of a queue may run at once, over all processes.

A lease of a limited queue has one of its places, a number that no other lease of the queue has: the database refuses a
second. A claim takes no more runs than there are places free, and one that loses the race for a place gives its run
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from holdfast.runs.queue_entry import QueueEntry
from holdfast.store.transaction import Transaction


def number_permits(
    tx: Transaction, tickets: Iterable[QueueEntry], limits: Mapping[str, int]
) -> tuple[dict[str, int], list[QueueEntry]]:
    """A free place for each of these runs whose queue is limited; and those for which there is none."""
    placed: dict[str, int] = {}
    crowded: list[QueueEntry] = []
    taken: dict[str, set[int]] = {queue: set() for queue in limits}
    for row in tx.all("find_places", queues=sorted(limits)):
        taken[row["queue"]].add(row["place"])
    free = {queue: _free(taken[queue], limit) for queue, limit in limits.items()}
    for ticket in tickets:
        if ticket.queue in limits:
            place = next(free[ticket.queue], None)
            if place is None:
                crowded.append(ticket)
            else:
                placed[ticket.run_id] = place
    return placed, crowded


def fill_permits(tx: Transaction, queue: str) -> None:
    """Number the leases that a queue has while it becomes limited."""
    tx.put("give_places", queue=queue)


def _free(taken: set[int], limit: int) -> Iterator[int]:
    """The lowest places that are free. One beyond a limit that was lowered counts until its run has ended."""
    return islice((place for place in range(1, limit + 1) if place not in taken), max(0, limit - len(taken)))
