"""Workers: who is alive, what they serve, and who holds an exclusive name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from holdfast import codec
from holdfast.errors import Unreadable, WorkerExists, WorkerNotFound
from holdfast.store.transaction import Row, Transaction


@dataclass(frozen=True, kw_only=True)
class WorkerInfo:
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


def register(tx: Transaction, worker: WorkerInfo, *, silent: WorkerInfo | None = None) -> WorkerInfo | None:
    """Write this worker down; the one that holds its exclusive name, if that stands in the way.

    `silent` is one that loses the name: if it has run out, and was not heard since it was last read.
    """
    if silent is not None:
        tx.put("delete_expired_worker", id=silent.id, seen_at=silent.seen_at, now=tx.now)
    while not tx.run("insert_worker", **_row(worker)):
        if beat(tx, worker.id, lease_for=worker.expires_at - tx.now, stopping=worker.stopping):
            return None  # the row is ours: an earlier attempt was committed, and its reply was lost
        if (holding := tx.one("find_exclusive", exclusive=worker.exclusive)) is not None:
            return info(holding)
    return None


def serve(tx: Transaction, worker_id: str, *, queues: Sequence[str], jobs: Mapping[str, str | None]) -> None:
    """Write down what this worker serves now: queues, and jobs with the digests of their schedules."""
    tx.put("set_worker", id=worker_id, queues=codec.compact(list(queues)), jobs=codec.compact(dict(jobs)))


def beat(tx: Transaction, worker_id: str, *, lease_for: timedelta, stopping: bool) -> bool:
    """Say that this worker is alive; False if it has been declared dead."""
    expires_at = tx.now + lease_for
    return tx.run("beat_worker", id=worker_id, now=tx.now, expires_at=expires_at, stopping=int(stopping)) == 1


def require(tx: Transaction, worker_id: str) -> None:
    """Raise unless this worker's row still stands: an exclusive worker that lost it may start nothing."""
    if not tx.run("guard_worker", id=worker_id):
        raise WorkerExists(f"worker {worker_id} has been replaced by another of its name")


def remove(tx: Transaction, worker_id: str) -> None:
    tx.put("delete_worker", id=worker_id)


def forget(tx: Transaction, *, before: datetime) -> int:
    """Remove workers that have not been seen since then."""
    return tx.run("delete_lost_workers", before=before)


def live(tx: Transaction) -> list[WorkerInfo]:
    return [info(row) for row in tx.all("find_workers", now=tx.now)]


def get(tx: Transaction, worker_id: str) -> WorkerInfo:
    """A live worker, or WorkerNotFound."""
    for worker in live(tx):
        if worker.id == worker_id:
            return worker
    raise WorkerNotFound(f"no live worker is called {worker_id}; it has ended, or has not been heard for a while")


def tasks(tx: Transaction, *, limit: int) -> list[Task]:
    """What runs now, worker by worker; at most so many."""
    return [Task(**row) for row in tx.all("list_leases", limit=limit)]


def drain(tx: Transaction, worker_id: str) -> WorkerInfo:
    """Ask a live worker to claim no more, finish what it has and end; asked again, nothing changes."""
    tx.put("request_drain", id=worker_id, now=tx.now)
    worker = get(tx, worker_id)
    tx.ring("drains")
    return worker


def unserved(alive: Sequence[WorkerInfo], queue: str, *, job: str | None = None) -> str | None:
    """Why nothing of this queue (and this job) starts, as far as that is for want of a worker."""
    if not alive:
        return "no worker is alive"
    serving = [worker for worker in alive if queue in worker.queues and (job is None or job in worker.jobs)]
    if any(worker.claims for worker in serving):
        return None
    return f"no live worker serves queue {queue}" + (", but one that is about to end" if serving else "")


def serving(alive: Sequence[WorkerInfo], queue: str, job: str) -> WorkerInfo | None:
    """A live worker that would run this job from this queue; one that keeps the job's schedule before others."""
    able = [worker for worker in alive if worker.claims and queue in worker.queues and job in worker.jobs]
    return min(able, key=lambda worker: job not in worker.schedules, default=None)


def pulse(tx: Transaction, *, queues: Sequence[str], jobs: Sequence[str], holder: str) -> Pulse:
    """Is there anything to do for this worker?"""
    row = tx.one("pulse", queues=list(queues), jobs=list(jobs), holder=holder)
    assert row is not None
    flags = ("ready", "looks", "open_holds", "needs", "errands", "stops", "cancels", "drains")
    seen = {name: bool(row[name]) for name in flags}
    return Pulse(**seen, expires_at=row["expires_at"], due_at=row["due_at"], clock_at=row["clock_at"])


def info(row: Row) -> WorkerInfo:
    reading = codec.Reading(row)
    jobs = reading.column("jobs", _jobs, instead=lambda _: {})
    queues = reading.column("queues", codec.texts, instead=lambda _: [])
    if reading.unreadable is not None:
        queues = [codec.marker(reading.unreadable), *queues]
    lists = {
        "queues": queues,
        "jobs": list(jobs),
        "schedules": {name: digest for name, digest in jobs.items() if digest is not None},
        "stopping": bool(row["stopping"]),
    }
    return WorkerInfo(**{**row, **lists})


def _jobs(text: str) -> dict[str, str | None]:
    """The jobs of a worker, each with the digest of its schedule's definition if the worker looks after one."""
    found = codec.mapping(text)
    if not all(digest is None or isinstance(digest, str) for digest in found.values()):
        raise Unreadable("not jobs and digests")
    return found


def _row(worker: WorkerInfo) -> Row:
    columns = WorkerInfo.__dataclass_fields__.keys() - {"drain_at", "schedules"}
    row = {name: getattr(worker, name) for name in columns}
    return row | {
        "queues": codec.compact(list(worker.queues)),
        "jobs": codec.compact({job: worker.schedules.get(job) for job in worker.jobs}),
        "stopping": int(worker.stopping),
    }
