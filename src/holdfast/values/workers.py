"""Workers and what they run now, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.values.fields import described


@described
@dataclass(frozen=True, kw_only=True)
class WorkerInfo:
    """A live worker."""

    id: str
    host: str
    pid: int
    version: str
    queues: Sequence[str]
    jobs: Sequence[str]
    concurrency: int
    exclusive: str | None
    started_at: datetime
    seen_at: datetime
    expires_at: datetime
    """If it is not heard until then, it counts as lost."""
    stopping: bool
    """It has been told to end, and finishes what it has."""
    drain_at: datetime | None = None
    """When someone asked it to drain: to claim no more, finish what it has, and end."""
    schedules: Mapping[str, str] = field(default_factory=dict)
    """The schedules that it looks after, each with the digest of its definition in the worker's code."""

    @property
    def claims(self) -> bool:
        """Whether it starts what is queued."""
        return self.drain_at is None and not self.stopping


@described
@dataclass(frozen=True, kw_only=True)
class Task:
    """A run that a worker does now."""

    run_id: str
    job: str
    queue: str
    key: str | None
    attempt: int
    holder: str
    started_at: datetime
    expires_at: datetime
    deadline_at: datetime | None
    cancel_requested_at: datetime | None


def why_unserved(alive: Sequence[WorkerInfo], queue: str, *, job: str | None = None) -> str | None:
    """Why nothing of this queue (and this job) starts, as far as that is for want of a worker."""
    if not alive:
        return "no worker is alive"
    serving = [worker for worker in alive if queue in worker.queues and (job is None or job in worker.jobs)]
    if any(worker.claims for worker in serving):
        return None
    return f"no live worker serves queue {queue}" + (", but one that is about to end" if serving else "")
