"""Workers: register, beat, list and drain them, and `hf.workers`."""

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
from holdfast.values.workers import Task, WorkerInfo


class Workers:
    """The live workers of one Holdfast, in whatever process."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def list(self) -> builtins.list[WorkerInfo]:
        """Every worker that has been heard within its lease, the longest alive first."""
        return self._runtime.read(live)

    def get(self, worker_id: str) -> WorkerInfo:
        """One live worker, or WorkerNotFound."""
        return self._runtime.read(lambda tx: get(tx, worker_id))

    def tasks(self, *, limit: int = 1000) -> builtins.list[Task]:
        """What runs now, worker by worker."""
        check_limit(limit)
        return self._runtime.read(lambda tx: tasks(tx, limit=limit))

    def drain(self, worker_id: str, *, by: str | None = None) -> WorkerInfo:
        """Ask a live worker to claim no more, finish what it has, and end; WorkerNotFound if it is not alive."""

        def drain(tx: Transaction) -> WorkerInfo:
            worker = drain_worker(tx, worker_id)
            audit.record(tx, by, "drain", worker=worker_id)
            return worker

        return self._runtime.do(drain)


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
    tx.put("set_worker", id=worker_id, queues=json_text.compact(list(queues)), jobs=json_text.compact(dict(jobs)))


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
    rows = tx.all("list_leases", limit=limit)
    return [Task(key=row.pop("run_key"), **row) for row in rows]


def by_worker(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """What each worker does now, by its id."""
    found: dict[str, list[Task]] = {}
    for task in tasks:
        found.setdefault(task.holder, []).append(task)
    return found


def drain_worker(tx: Transaction, worker_id: str) -> WorkerInfo:
    """Ask a live worker to claim no more, finish what it has and end; asked again, nothing changes."""
    tx.put("request_drain", id=worker_id, now=tx.now)
    worker = get(tx, worker_id)
    tx.notify("drains")
    return worker


def serving(alive: Sequence[WorkerInfo], queue: str, job: str) -> WorkerInfo | None:
    """A live worker that would run this job from this queue; one that keeps the job's schedule before others."""
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
    """The jobs of a worker, each with the digest of its schedule's definition if the worker looks after one."""
    found = json_text.mapping(text)
    if not all(digest is None or isinstance(digest, str) for digest in found.values()):
        raise Unreadable("not jobs and digests")
    return found


def _row(worker: WorkerInfo) -> Row:
    columns = WorkerInfo.__dataclass_fields__.keys() - {"drain_at", "schedules"}
    row = {name: getattr(worker, name) for name in columns}
    return row | {
        "queues": json_text.compact(list(worker.queues)),
        "jobs": json_text.compact({job: worker.schedules.get(job) for job in worker.jobs}),
        "stopping": int(worker.stopping),
    }
