"""Workers: register, list and drain workers, and the namespace `hf.workers`."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from holdfast.runs import audit
from holdfast.runtime import Runtime
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.errors import Unreadable, WorkerExists, WorkerNotFound
from holdfast.support.validation import check_limit
from holdfast.values.workers import ActiveRun, WorkerInfo


class Workers:
    """The live workers of one Holdfast, in all processes."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def list(self) -> builtins.list[WorkerInfo]:
        """Return every worker whose heartbeat has not expired, oldest first."""
        return self._runtime.read(live)

    def get(self, worker_id: str) -> WorkerInfo:
        """Return one live worker, or raise WorkerNotFound."""
        return self._runtime.read(lambda tx: get(tx, worker_id))

    def active_runs(self, *, limit: int = 1000) -> builtins.list[ActiveRun]:
        """Return the runs that are running now, grouped by worker."""
        check_limit(limit)
        return self._runtime.read(lambda tx: active_runs(tx, limit=limit))

    def drain(self, worker_id: str, *, by: str | None = None) -> WorkerInfo:
        """Ask a live worker to claim no more runs, finish its current runs and stop; or raise WorkerNotFound."""

        def drain(tx: Transaction) -> WorkerInfo:
            worker = drain_worker(tx, worker_id)
            audit.record(tx, by, "drain", worker=worker_id)
            return worker

        return self._runtime.do(drain)


def register(tx: Transaction, worker: WorkerInfo, *, silent: WorkerInfo | None = None) -> WorkerInfo | None:
    """Insert a worker. If another worker has its exclusive name, insert nothing and return that worker.

    `silent` is a worker to remove first, provided it has expired and has sent no heartbeat since it was read.
    """
    if silent is not None:
        tx.put("delete_expired_worker", id=silent.id, last_seen_at=silent.last_seen_at, now=tx.now)
    while not tx.run("insert_worker", **_row(worker)):
        if beat(tx, worker.id, lease_for=worker.expires_at - tx.now, stopping=worker.stopping):
            return None  # the row is ours: an earlier transaction was committed, and its reply was lost
        if (row := tx.one("find_exclusive", exclusive=worker.exclusive)) is not None:
            return info(row)
    return None


def serve(tx: Transaction, worker_id: str, *, queues: Sequence[str], jobs: Mapping[str, str | None]) -> None:
    """Store the queues that this worker serves, and its jobs with the digests of their schedules."""
    tx.put("set_worker", id=worker_id, queues=json_text.compact(list(queues)), jobs=json_text.compact(dict(jobs)))


def beat(tx: Transaction, worker_id: str, *, lease_for: timedelta, stopping: bool) -> bool:
    """Write a heartbeat of this worker; return False if its row is gone."""
    expires_at = tx.now + lease_for
    return tx.run("beat_worker", id=worker_id, now=tx.now, expires_at=expires_at, stopping=int(stopping)) == 1


def require(tx: Transaction, worker_id: str) -> None:
    """Raise WorkerExists if the row of this exclusive worker is gone. The worker must then start no run."""
    if not tx.run("guard_worker", id=worker_id):
        raise WorkerExists(f"worker {worker_id} was replaced by another worker with the same name")


def remove(tx: Transaction, worker_id: str) -> None:
    tx.put("delete_worker", id=worker_id)


def forget(tx: Transaction, *, before: datetime) -> int:
    """Delete workers whose last heartbeat is older than `before`."""
    return tx.run("delete_lost_workers", before=before)


def live(tx: Transaction) -> list[WorkerInfo]:
    return [info(row) for row in tx.all("find_workers", now=tx.now)]


def get(tx: Transaction, worker_id: str) -> WorkerInfo:
    """Return a live worker, or raise WorkerNotFound."""
    for worker in live(tx):
        if worker.id == worker_id:
            return worker
    raise WorkerNotFound(f"no live worker is called {worker_id}; it has stopped, or has sent no heartbeat for a while")


def active_runs(tx: Transaction, *, limit: int) -> list[ActiveRun]:
    """Return up to `limit` runs that are running now, grouped by worker."""
    rows = tx.all("list_leases", limit=limit)
    return [ActiveRun(key=row.pop("run_key"), **row) for row in rows]


def by_worker(active_runs: Sequence[ActiveRun]) -> dict[str, list[ActiveRun]]:
    """Group running runs by the id of their worker."""
    groups: dict[str, list[ActiveRun]] = {}
    for run in active_runs:
        groups.setdefault(run.holder, []).append(run)
    return groups


def drain_worker(tx: Transaction, worker_id: str) -> WorkerInfo:
    """Ask a live worker to claim no more runs, finish its current runs and stop; a second request changes nothing."""
    tx.put("request_drain", id=worker_id, now=tx.now)
    worker = get(tx, worker_id)
    tx.notify("drains")
    return worker


def serving(alive: Sequence[WorkerInfo], queue: str, job: str) -> WorkerInfo | None:
    """Return a live worker that can run this job from this queue, preferably one with the job's schedule."""
    able = [worker for worker in alive if worker.claims and queue in worker.queues and job in worker.jobs]
    return min(able, key=lambda worker: job not in worker.schedules, default=None)


def info(row: Row) -> WorkerInfo:
    reading = json_text.Reading(row)
    jobs = reading.column("jobs", _jobs, instead=lambda _: {})
    queues = reading.column("queues", json_text.texts, instead=lambda _: [])
    if reading.unreadable is not None:
        queues = [json_text.marker(reading.unreadable), *queues]
    lists = {
        "queues": queues,
        "jobs": list(jobs),
        "schedules": {name: digest for name, digest in jobs.items() if digest is not None},
        "stopping": bool(row["stopping"]),
    }
    return WorkerInfo(**{**row, **lists})


def _jobs(text: str) -> dict[str, str | None]:
    """Read the jobs of a worker, each with the digest of its schedule, or None if it has no schedule."""
    jobs = json_text.mapping(text)
    if not all(digest is None or isinstance(digest, str) for digest in jobs.values()):
        raise Unreadable("not a mapping of jobs to digests")
    return jobs


def _row(worker: WorkerInfo) -> Row:
    columns = WorkerInfo.__dataclass_fields__.keys() - {"drain_requested_at", "schedules"}
    row = {name: getattr(worker, name) for name in columns}
    return row | {
        "queues": json_text.compact(list(worker.queues)),
        "jobs": json_text.compact({job: worker.schedules.get(job) for job in worker.jobs}),
        "stopping": int(worker.stopping),
    }
