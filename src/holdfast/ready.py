"""Ready: runs that may be claimed now.

waits ──orchestrator──▶ ready ──claim──▶ leases
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.store.transaction import Transaction
from holdfast.tickets import Ticket


def put(tx: Transaction, tickets: Iterable[Ticket]) -> None:
    """Let these runs be claimed, and wake who serves their queues."""
    tickets = list(tickets)
    if tickets:
        tx.run("insert_ready", rows=[ticket.row() for ticket in tickets])
        tx.ring(*{ticket.queue for ticket in tickets})


def take(
    tx: Transaction, queues: Sequence[str], *, jobs: Sequence[str], limit: int, oldest_first: bool = False
) -> list[Ticket]:
    """Remove up to `limit` runs of jobs that we know: the first queue first, then by priority, then by age."""
    statement = "take_oldest_ready" if oldest_first else "take_ready"
    taken: list[Ticket] = []
    for queue in queues:
        if len(taken) == limit:
            break
        rows = tx.all(statement, queue=queue, jobs=list(jobs), limit=limit - len(taken))
        taken += sorted(map(Ticket.of, rows), key=lambda ticket: (ticket.rank, ticket.run_id))
    return taken


def remove(tx: Transaction, run_ids: Sequence[str]) -> list[Ticket]:
    """Those of these runs that were ready and are now ours to move."""
    return [Ticket.of(row) for row in tx.all("delete_ready", ids=list(run_ids))]
