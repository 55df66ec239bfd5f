"""Holds: whose turn it is for a key.

    (none) ──take──▶ held by a run ──finish opens it──▶ open ──orchestrator──▶ held by the oldest due waiter
                                                          └──no one waits──▶ (none)

A finish does not delete a hold, it opens it: between two turns no younger run can slip in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.store.transaction import Transaction
from holdfast.tickets import Ticket


def take(tx: Transaction, wanted: Mapping[str, str]) -> set[str]:
    """Of key → run, the runs that got their key: it was free, and no due run waits for it."""
    if not wanted:
        return set()
    rows = [{"key": key, "run_id": run_id} for key, run_id in sorted(wanted.items())]
    return {row["run_id"] for row in tx.all("take_holds", rows=rows, now=tx.now)}


def open_those_of(tx: Transaction, tickets: Iterable[Ticket]) -> None:
    """These runs have had their turn; an orchestrator decides who comes next."""
    keyed = [(ticket.run_id, ticket.key, ticket.number) for ticket in tickets if ticket.key is not None]
    if keyed:
        tx.put("open_holds", ids=sorted(run_id for run_id, _, _ in keyed))
        tx.opened += [(key, number) for _, key, number in keyed]
        tx.ring("holds")
