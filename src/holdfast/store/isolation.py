"""Isolations: what a caller's transaction sees of what others commit while it is open."""

from __future__ import annotations

from holdfast.store.transaction import Transaction
from holdfast.support.errors import WrongConnection


def require_latest(tx: Transaction, purpose: str) -> None:
    """Raise WrongConnection if the transaction has a snapshot that may be out of date."""
    if (isolation := of(tx)) is not None:
        raise WrongConnection(
            f"{purpose} in your own transaction, its isolation must be READ COMMITTED, and it is {isolation}: "
            "it does not see what others have committed since it began"
        )


def of(tx: Transaction) -> str | None:
    """The name of the transaction's isolation if it reads from a snapshot; None if each statement sees the latest."""
    found = None if tx.owned else tx.one("find_isolation")
    return found["isolation"].upper() if found is not None and found["isolation"] is not None else None
