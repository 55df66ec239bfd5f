"""Workers and the runs that they execute, as values."""

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
    last_seen_at: datetime
    expires_at: datetime
    """The worker counts as lost if it does not report before this time."""
    stopping: bool
    """Whether it is shutting down: it finishes its runs and claims no more."""
    drain_requested_at: datetime | None = None
    """When someone asked it to drain: to claim no more runs, finish its current runs, and end."""
    schedules: Mapping[str, str] = field(default_factory=dict)
    """The schedules that it handles, each with the digest of its definition in the worker's code."""

    @property
    def claims(self) -> bool:
        """Whether it claims queued runs."""
        return self.drain_requested_at is None and not self.stopping


@described
@dataclass(frozen=True, kw_only=True)
class ActiveRun:
    """A run that a worker is executing."""

    run_id: str
    job: str
    queue: str
    key: str | None
    attempt: int
    claim: int
    holder: str
    started_at: datetime
    expires_at: datetime
    deadline_at: datetime | None
    cancel_requested_at: datetime | None


def why_unserved(alive: Sequence[WorkerInfo], queue: str, *, job: str | None = None) -> str | None:
    """Say why no worker starts runs of this queue (and this job); None if a worker does."""
    if not alive:
        return "no worker is alive"
    serving = [worker for worker in alive if queue in worker.queues and (job is None or job in worker.jobs)]
    if any(worker.claims for worker in serving):
        return None
    return f"no live worker serves queue {queue}" + (", except one that is shutting down" if serving else "")
