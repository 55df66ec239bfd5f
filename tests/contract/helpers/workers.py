"""Register workers in the database without starting processes for them."""

from __future__ import annotations

from typing import Any

from holdfast import Holdfast, __version__
from holdfast.runs import workers
from holdfast.values.workers import WorkerInfo


def register(hf: Holdfast, name: str, **changes: Any) -> None:
    """Write the row of a live worker; no process is started."""
    now = hf.clock.now()
    values: dict[str, Any] = {
        "id": name,
        "host": "host-a",
        "pid": 1,
        "version": __version__,
        "queues": ["default"],
        "jobs": ["work"],
        "concurrency": 1,
        "exclusive": None,
        "started_at": now,
        "last_seen_at": now,
        "expires_at": now + hf.settings.lease,
        "stopping": False,
    }
    hf.do(lambda tx: workers.register(tx, WorkerInfo(**(values | changes))))
