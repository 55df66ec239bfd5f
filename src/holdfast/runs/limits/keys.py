"""Keys: at most `key_limit` runs of a key run at once. Key locks decide which ones; `hf.keys` lists the keys.

    (no lock) ──take──▶ held by a run ──finish opens it──▶ open ──assign──▶ held by the oldest due run
                                                             └──none waits──▶ (no lock)

A worker assigns the lock in the same commit if it sees a run that waits for the key; otherwise an orchestrator does.

Finishing a run opens its key lock instead of deleting it, so that a newly submitted run can't overtake waiting runs.
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
    """The keys of one Holdfast that runs lock or wait for."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def list(self, *, limit: int = 100, after: str = "") -> list[Key]:
        """Return the keys that runs lock or wait for, alphabetically. `after` is the last key of the previous page."""
        check_limit(limit)
        return self._runtime.read(lambda tx: list_keys(tx, limit=limit, after=after))


def take_key_locks(tx: Transaction, wanted: Mapping[str, str]) -> set[str]:
    """Take a key lock for each run in `wanted` (key → run id); return the runs that got theirs.

    A run gets its key if the key is free and no due run waits for it.
    """
    if not wanted:
        return set()
    rows = [{"run_key": key, "run_id": run_id} for key, run_id in sorted(wanted.items())]
    return {row["run_id"] for row in tx.all("take_key_locks", rows=rows, now=tx.now)}


def open_key_locks(tx: Transaction, entries: Iterable[QueueEntry]) -> None:
    """Open the key locks of these runs, so that each can be given to the next run."""
    keyed = [(entry.run_id, entry.key, entry.key_number) for entry in entries if entry.key is not None]
    if keyed:
        tx.put("open_key_locks", ids=sorted(run_id for run_id, _, _ in keyed))
        tx.opened += [(key, number) for _, key, number in keyed]
        tx.notify("key_locks")


def list_keys(tx: Transaction, *, limit: int, after: str) -> list[Key]:
    """Return keys that runs lock or wait for, in alphabetical order, starting after `after`."""
    return [_key(tx, row) for row in tx.all("list_keys", limit=limit, after=after)]


def _key(tx: Transaction, row: Row) -> Key:
    held = [lock for lock in tx.all("find_key_locks", key=row["run_key"]) if lock["run_id"] is not None]
    return Key(
        key=row["run_key"],
        limit=row["key_limit"] or 1,
        holders=tuple(_holder(lock) for lock in held),
        waiting=row["waiting"],
        oldest_at=row["oldest_at"],
    )


def _holder(lock: Row) -> Holder:
    state: Literal["running", "ready", "waits"] = "running" if lock["holder"] else "waits" if lock["waits"] else "ready"
    return Holder(
        run_id=lock["run_id"],
        state=state,
        worker=lock["holder"],
        due_at=lock["due_at"],
        started_at=lock["started_at"],
    )
