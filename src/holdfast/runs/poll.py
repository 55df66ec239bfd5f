"""Poll: whether there is anything to do, answered in one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.store.transaction import Row, Transaction


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
    """Look, without saying that we are alive."""
    row = tx.one("pulse", queues=list(queues), jobs=list(jobs), holder=holder)
    assert row is not None
    return _pulse(row)


def beat_and_pulse(
    tx: Transaction, *, queues: Sequence[str], jobs: Sequence[str], holder: str, lease_for: timedelta
) -> Pulse | None:
    """Say that this worker is alive, and look, in one statement; None if it has been declared dead."""
    who = {"queues": list(queues), "jobs": list(jobs), "holder": holder}
    row = tx.one("beat_and_pulse", **who, now=tx.now, expires_at=tx.now + lease_for)
    if row is None:
        return None
    # Where one statement can't do both, it has only said that we are alive.
    return _pulse(row) if "ready" in row else read_pulse(tx, queues=queues, jobs=jobs, holder=holder)


def _pulse(row: Row) -> Pulse:
    flags = ("ready", "looks", "open_holds", "needs", "errands", "stops", "cancels", "drains")
    seen = {name: bool(row[name]) for name in flags}
    return Pulse(**seen, expires_at=row["expires_at"], due_at=row["due_at"], clock_at=row["clock_at"])
