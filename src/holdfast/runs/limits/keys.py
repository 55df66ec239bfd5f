"""Keys: at most `key_limit` runs of a key run at once; key locks decide which, and `hf.keys` lists them.

    (no lock) ──take──▶ held by a run ──finish opens it──▶ open ──orchestrator──▶ held by the oldest due run
                                                             └──none waits──▶ (no lock)

A finish opens a lock instead of deleting it, so that no younger run can take the key between two runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from holdfast.runs.queue_entry import QueueEntry
from holdfast.runtime import Runtime
from holdfast.store.transaction import Row, Transaction
from holdfast.support.validation import check_limit
from holdfast.values.keys import Holder, Key


class Keys:
    """The keys of one Holdfast that someone holds or waits for."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def list(self, *, limit: int = 100, after: str = "") -> list[Key]:
        """Keys that someone holds or waits for, in their order; `after` continues after the last of the page before."""
        check_limit(limit)
        return self._runtime.read(lambda tx: list_keys(tx, limit=limit, after=after))


def take_key_locks(tx: Transaction, wanted: Mapping[str, str]) -> set[str]:
    """Of key → run, the runs that got their key: it was free, and no due run waits for it."""
    if not wanted:
        return set()
    rows = [{"run_key": key, "run_id": run_id} for key, run_id in sorted(wanted.items())]
    return {row["run_id"] for row in tx.all("take_holds", rows=rows, now=tx.now)}


def open_key_locks(tx: Transaction, tickets: Iterable[QueueEntry]) -> None:
    """These runs have had their turn; an orchestrator decides who comes next."""
    keyed = [(ticket.run_id, ticket.key, ticket.number) for ticket in tickets if ticket.key is not None]
    if keyed:
        tx.put("open_holds", ids=sorted(run_id for run_id, _, _ in keyed))
        tx.opened += [(key, number) for _, key, number in keyed]
        tx.notify("holds")


def list_keys(tx: Transaction, *, limit: int, after: str) -> list[Key]:
    """Keys that someone holds or waits for, in their order, after this one."""
    return [_key(tx, row) for row in tx.all("list_keys", limit=limit, after=after)]


def _key(tx: Transaction, row: Row) -> Key:
    held = [hold for hold in tx.all("find_holds", key=row["run_key"]) if hold["run_id"] is not None]
    return Key(
        key=row["run_key"],
        limit=row["key_limit"] or 1,
        holders=tuple(_holder(hold) for hold in held),
        waiting=row["waiting"],
        oldest_at=row["oldest_at"],
    )


def _holder(hold: Row) -> Holder:
    state: Literal["running", "ready", "waits"] = "running" if hold["holder"] else "waits" if hold["waits"] else "ready"
    return Holder(
        run_id=hold["run_id"],
        state=state,
        worker=hold["holder"],
        due_at=hold["due_at"],
        started_at=hold["started_at"],
    )
