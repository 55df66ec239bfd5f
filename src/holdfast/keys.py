"""Keys: what of them is held, and who waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.store.transaction import Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A run that has a hold on a key; without a worker it is ready and has not started."""

    run_id: str
    worker: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key: how many may hold it at once, who does, how many wait, and when the oldest of these was submitted."""

    key: str
    limit: int
    holders: tuple[Holder, ...]
    waiting: int
    oldest_at: datetime | None


def listed(tx: Transaction, *, limit: int, after: str) -> list[Key]:
    """Keys that someone holds or waits for, in their order, after this one."""
    return [_key(tx, row) for row in tx.all("list_keys", limit=limit, after=after)]


def _key(tx: Transaction, row: Row) -> Key:
    held = [hold for hold in tx.all("find_holds", key=row["key"]) if hold["run_id"] is not None]
    return Key(
        key=row["key"],
        limit=row["key_limit"] or 1,
        holders=tuple(Holder(run_id=hold["run_id"], worker=hold["holder"]) for hold in held),
        waiting=row["waiting"],
        oldest_at=row["oldest_at"],
    )
