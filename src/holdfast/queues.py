"""Queues: pauses (and, later, limits). A queue that is neither paused nor limited has no row."""

from __future__ import annotations

from holdfast.store.transaction import Transaction


def pause(tx: Transaction, name: str, *, note: str | None) -> None:
    """Let nothing of this queue be claimed; what runs goes on."""
    tx.put("ensure_queue", name=name)
    tx.put("pause_queue", name=name, now=tx.now, note=note)


def resume(tx: Transaction, name: str) -> None:
    """Let it be claimed again."""
    tx.put("resume_queue", name=name)
    tx.ring(name)


def paused(tx: Transaction) -> list[str]:
    return [row["name"] for row in tx.all("find_paused_queues")]
