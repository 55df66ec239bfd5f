"""Registration: writes the worker's row, enforces exclusive names, and recovers runs that lost workers left behind.

`single_process` allows one worker process per database; `exclusive` allows one live worker of a name.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import __version__
from holdfast.orchestrator import recover
from holdfast.orchestrator.recover import STARTUP
from holdfast.runs import workers
from holdfast.runtime import Runtime
from holdfast.schedules import slots
from holdfast.store.transaction import Transaction
from holdfast.support import json_text
from holdfast.support.errors import WorkerExists
from holdfast.support.ids import Ids
from holdfast.values.workers import WorkerInfo

if TYPE_CHECKING:
    from holdfast.worker.worker import Worker

log = logging.getLogger("holdfast.worker")


def take(runtime: Runtime, worker: Worker) -> ExitStack:
    """Register the worker and return its lock, which the caller closes. Raise WorkerExists if it may not start."""
    single_process = runtime.settings.single_process
    with ExitStack() as lock:
        file = _lock_file(runtime) if single_process else None
        if file is not None:
            lock.callback(file.close)
        register(runtime, worker, take_over=file is not None)
        if single_process:
            _end_orphans(runtime, worker)
        elif worker.exclusive is not None:
            _end_predecessors(runtime, worker)
        return lock.pop_all()


def _lock_file(runtime: Runtime) -> Any:
    """Lock a file beside the database. The operating system frees the lock when the process ends, however it ends."""
    path: Path | None = getattr(runtime.store.dialect, "path", None)
    if path is None:
        return None
    import fcntl

    file = open(path.with_name(path.name + ".solo"), "a+")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        owner = file.read().strip() or "unknown"
        file.close()
        raise WorkerExists(
            f"another worker process ({owner}) already uses {path.name}, and single_process allows only one"
        ) from None
    file.truncate(0)
    file.write(f"{socket.gethostname()} pid {os.getpid()}")
    file.flush()
    return file


def register(runtime: Runtime, worker: Worker, *, take_over: bool = False) -> None:
    """Write the worker's row. Raise WorkerExists if a live worker has its exclusive name.

    An expired row may belong to a live worker that could not write for a while. So a name is taken over only if its
    row has expired and was not renewed while we watched it for half a lease. This can take about as long as a lease.
    """
    exclusive = "solo" if runtime.settings.single_process else worker.exclusive
    first_seen: dict[str, tuple[datetime, float]] = {}
    silent: WorkerInfo | None = None
    pause = threading.Event()

    def attempt(tx: Transaction) -> WorkerInfo | None:
        if take_over:
            tx.run("delete_exclusive", exclusive=exclusive)
        now = tx.now
        return workers.register(
            tx,
            WorkerInfo(
                id=worker.id,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=__version__,
                queues=worker.served,
                jobs=runtime.jobs.served(),
                schedules=_definitions(worker) if worker.schedules else {},
                concurrency=worker.concurrency,
                exclusive=exclusive,
                started_at=now,
                last_seen_at=now,
                expires_at=now + runtime.settings.lease,
                stopping=False,
            ),
            silent=silent,
        )

    while True:
        other = runtime.do(attempt)
        if other is None:
            return
        last_seen_at, since = first_seen.setdefault(other.id, (other.last_seen_at, runtime.clock.elapsed()))
        if last_seen_at != other.last_seen_at:
            raise WorkerExists(
                f"the name {exclusive!r} is taken by worker {other.id} (host {other.host}, pid {other.pid}); "
                "stop it first or choose another name"
            )
        silent = other if runtime.clock.elapsed() - since >= runtime.settings.takeover_wait.total_seconds() else None
        log.info("the name %r belongs to worker %s; waiting to see whether it is alive", exclusive, other.id)
        pause.wait(runtime.settings.poll_interval.total_seconds() / 2)


def update(runtime: Runtime, worker: Worker) -> None:
    """Store which queues and jobs the worker serves now."""
    digests = _definitions(worker) if worker.schedules else {}
    jobs = {name: digests.get(name) for name in runtime.jobs.served()}
    runtime.do(lambda tx: workers.serve(tx, worker.id, queues=worker.served, jobs=jobs))


def _definitions(worker: Worker) -> dict[str, str]:
    """Return a digest of each schedule's definition, by which workers notice that their definitions differ."""
    return {name: json_text.digest(schedule.to_json()) for name, schedule in worker.declarations.schedules.items()}


def _end_predecessors(runtime: Runtime, worker: Worker) -> None:
    """Recover the runs that earlier workers of our name left behind, before we claim anything.

    A run is recovered once its lease has expired and was not renewed for a while. With `unknown='fail'`, this includes
    the runs of workers that are no longer registered. If any of these workers claimed a slot but did not start its
    run, that run fails, too, because a slot has only one attempt.
    """
    name = Ids.name_of(worker.id)
    pause = threading.Event()
    give_up_at = runtime.clock.elapsed() + 3 * runtime.settings.lease.total_seconds()
    total = 0

    def end(tx: Transaction) -> tuple[list[recover.Takeover], list[str], bool]:
        # This may take longer than a lease, and our heartbeat has not started yet.
        workers.beat(tx, worker.id, lease_for=runtime.settings.lease, stopping=False)
        known = {one.id for one in workers.live(tx)}

        def left_behind(holder: str) -> bool:
            ours = Ids.name_of(holder) == name
            return holder != worker.id and (ours or (worker.unknown == "fail" and holder not in known))

        rows = recover.overdue(tx, wait=runtime.settings.takeover_wait, limit=1000)
        ended = recover.take_away(tx, [row for row in rows if left_behind(row["holder"])], reason=STARTUP)
        unstarted = slots.abandon(tx, left_behind, reason=STARTUP)
        _count(tx, len(ended) + len(unstarted))
        more = any(left_behind(row["holder"]) for row in tx.all("count_leases"))
        return ended, unstarted, more

    while True:
        ended, unstarted, more = runtime.do(end)
        total += _log_takeovers(ended) + _log_unstarted(unstarted)
        if not more or runtime.clock.elapsed() > give_up_at:
            break
        if not ended:
            pause.wait(runtime.settings.poll_interval.total_seconds() / 2)
    if total:
        log.warning("%s: recovered %d runs that an earlier worker left behind", STARTUP, total)


def _end_orphans(runtime: Runtime, worker: Worker) -> None:
    """Recover all running runs and claimed slots. We are the only process, so an earlier one left them behind."""

    def end(tx: Transaction) -> list[recover.Takeover]:
        ended = recover.take_away(
            tx, tx.all("find_all_leases", limit=1000), reason="the process has ended", orphaned=True
        )
        _count(tx, len(ended))
        return ended

    def abandon(tx: Transaction) -> list[str]:
        unstarted = slots.abandon(tx, lambda claimed_by: claimed_by != worker.id, reason=STARTUP)
        _count(tx, len(unstarted))
        return unstarted

    total = _log_unstarted(runtime.do(abandon))
    while ended := runtime.do(end):
        total += _log_takeovers(ended)
    if total:
        log.warning("recovered %d runs that a lost process left behind", total)


def _count(tx: Transaction, runs: int) -> None:
    for _ in range(runs):
        tx.count("startup_takeover")


def _log_takeovers(takeovers: list[recover.Takeover]) -> int:
    for takeover in takeovers:
        log.warning("%s", takeover)
    return len(takeovers)


def _log_unstarted(run_ids: list[str]) -> int:
    for run_id in run_ids:
        log.warning("run %s failed: the worker that claimed its slot was lost before the run started", run_id)
    return len(run_ids)
