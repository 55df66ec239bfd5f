"""Keys: what of them is held, and who waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from holdfast.store.transaction import Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A run that has a hold on a key.

    state  running on its `worker`; ready, and not started; or it waits (for its next attempt at `due_at`, for runs that
           it has submitted) and keeps the key meanwhile, as key_order='strict' says
    """

    run_id: str
    state: Literal["running", "ready", "waits"]
    worker: str | None
    due_at: datetime | None
    started_at: datetime | None = None
    """When its attempt began, if it runs."""


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
