"""Concurrency: how many runs of a queue may run at once, over all processes.

Each lease in a limited queue has a concurrency permit: a number that is unique among the leases of the queue. A claim
takes no more runs than there are free permits. If it loses the race for a permit, it returns the run to `ready`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from holdfast.runs.queue_entry import QueueEntry
from holdfast.store.transaction import Transaction


def number_permits(
    tx: Transaction, entries: Iterable[QueueEntry], limits: Mapping[str, int]
) -> tuple[dict[str, int], list[QueueEntry]]:
    """Return a free permit for each of these runs whose queue is limited, and the runs for which none is left."""
    permits: dict[str, int] = {}
    no_permit: list[QueueEntry] = []
    taken: dict[str, set[int]] = {queue: set() for queue in limits}
    for row in tx.all("find_permits", queues=sorted(limits)):
        taken[row["queue"]].add(row["permit"])
    free = {queue: _free(taken[queue], limit) for queue, limit in limits.items()}
    for entry in entries:
        if entry.queue in limits:
            permit = next(free[entry.queue], None)
            if permit is None:
                no_permit.append(entry)
            else:
                permits[entry.run_id] = permit
    return permits, no_permit


def fill_permits(tx: Transaction, queue: str) -> None:
    """Give permits to the existing leases of a queue that becomes limited."""
    tx.put("assign_permits", queue=queue)


def _free(taken: set[int], limit: int) -> Iterator[int]:
    """Return the free permits, lowest first.

    After a limit is lowered, leases with a higher permit still count against it until they end.
    """
    return islice((permit for permit in range(1, limit + 1) if permit not in taken), max(0, limit - len(taken)))
