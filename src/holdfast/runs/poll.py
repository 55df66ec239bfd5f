"""Poll: whether there is anything to do, answered in one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class Pulse:
    """Whether there is anything to do, answered in one query."""

    ready: bool
    looks: bool
    open_holds: bool
    needs: bool
    errands: bool
    stops: bool
    cancels: bool
    drains: bool
    """Someone has asked the worker that looks to drain."""
    expires_at: datetime | None
    due_at: datetime | None
    clock_at: datetime | None
    """The database's own time, where it has one."""


def read_pulse(tx: Transaction, *, queues: Sequence[str], jobs: Sequence[str], holder: str) -> Pulse:
    """Is there anything to do for this worker?"""
    row = tx.one("pulse", queues=list(queues), jobs=list(jobs), holder=holder)
    assert row is not None
    flags = ("ready", "looks", "open_holds", "needs", "errands", "stops", "cancels", "drains")
    seen = {name: bool(row[name]) for name in flags}
    return Pulse(**seen, expires_at=row["expires_at"], due_at=row["due_at"], clock_at=row["clock_at"])
