"""Registration: one process only (`solo`), or one live worker of a name (`exclusive`). Recovery follows the lock."""

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
    """Register the worker; closing what is returned gives its lock back. WorkerExists names the live one in its way."""
    solo = runtime.settings.solo
    with ExitStack() as lock:
        file = _lock_file(runtime) if solo else None
        if file is not None:
            lock.callback(file.close)
        register(runtime, worker, take_over=file is not None)
        if solo:
            _end_orphans(runtime, worker)
        elif worker.exclusive is not None:
            _end_predecessors(runtime, worker)
        return lock.pop_all()


def _lock_file(runtime: Runtime) -> Any:
    """The operating system's lock on a file beside the database; gone with its process, however that ends."""
    path: Path | None = getattr(runtime.store.dialect, "path", None)
    if path is None:
        return None
    import fcntl

    file = open(path.with_name(path.name + ".solo"), "a+")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        who = file.read().strip() or "unknown"
        file.close()
        raise WorkerExists(f"{path.name} is worked by another process ({who}); solo means one") from None
    file.truncate(0)
    file.write(f"{socket.gethostname()} pid {os.getpid()}")
    file.flush()
    return file


def register(runtime: Runtime, worker: Worker, *, take_over: bool = False) -> None:
    """Write the worker's row. If another has its exclusive name, wait one lease at most; if that one lives, name it.

    A row that has run out may be that of a living worker, which could not write for a while. So a name is taken over
    only after nothing was heard of its worker for half a lease.
    """
    exclusive = "solo" if runtime.settings.solo else worker.exclusive
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
                seen_at=now,
                expires_at=now + runtime.settings.lease,
                stopping=False,
            ),
            silent=silent,
        )

    while True:
        other = runtime.do(attempt)
        if other is None:
            return
        seen_at, since = first_seen.setdefault(other.id, (other.seen_at, runtime.clock.elapsed()))
        if seen_at != other.seen_at:
            raise WorkerExists(
                f"worker {other.id} (host {other.host}, pid {other.pid}) is alive and has the name {exclusive!r}"
            )
        silent = other if runtime.clock.elapsed() - since >= runtime.settings.takeover_wait.total_seconds() else None
        log.info("waiting for %s, which has the name %r, to be heard or to run out", other.id, exclusive)
        pause.wait(runtime.settings.tick.total_seconds() / 2)


def update(runtime: Runtime, worker: Worker) -> None:
    """Write down what the worker serves now."""
    digests = _definitions(worker) if worker.schedules else {}
    jobs = {name: digests.get(name) for name in runtime.jobs.served()}
    runtime.do(lambda tx: workers.serve(tx, worker.id, queues=worker.served, jobs=jobs))


def _definitions(worker: Worker) -> dict[str, str]:
    """The schedules of our code, each with the digest of its definition: others see whether theirs is the same."""
    return {name: json_text.digest(schedule.to_json()) for name, schedule in worker.declarations.schedules.items()}


def _end_predecessors(runtime: Runtime, worker: Worker) -> None:
    """What earlier workers of our name left running ends before we start anything, once its lease has run out and was
    not renewed for a while.

    With `unknown='fail'`, so does what any worker left that is not known any more. A slot that such a worker claimed
    and that no worker has started ends, too: a slot has one attempt, and its claimant is gone.
    """
    name = Ids.name_of(worker.id)
    pause = threading.Event()
    give_up_at = runtime.clock.elapsed() + 3 * runtime.settings.lease.total_seconds()
    total = 0

    def end(tx: Transaction) -> tuple[list[recover.Takeover], list[str], bool]:
        # This may take longer than a lease, and our heartbeat has not begun.
        workers.beat(tx, worker.id, lease_for=runtime.settings.lease, stopping=False)
        known = {one.id for one in workers.live(tx)}

        def left_behind(holder: str) -> bool:
            ours = Ids.name_of(holder) == name
            return holder != worker.id and (ours or (worker.unknown == "fail" and holder not in known))

        rows = recover.overdue(tx, wait=runtime.settings.takeover_wait, limit=1000)
        ended = recover.take_away(tx, [row for row in rows if left_behind(row["holder"])], because=STARTUP)
        unstarted = slots.abandon(tx, left_behind, because=STARTUP)
        _count(tx, len(ended) + len(unstarted))
        more = any(left_behind(row["holder"]) for row in tx.all("count_leases"))
        return ended, unstarted, more

    while True:
        ended, unstarted, more = runtime.do(end)
        total += _told(ended) + _told_unstarted(unstarted)
        if not more or runtime.clock.elapsed() > give_up_at:
            break
        if not ended:
            pause.wait(runtime.settings.tick.total_seconds() / 2)
    if total:
        log.warning("%s: %d runs that an earlier worker left behind were recovered", STARTUP, total)


def _end_orphans(runtime: Runtime, worker: Worker) -> None:
    """We are alone, so whatever still runs, and every claimed slot, was left behind by a process that is gone."""

    def end(tx: Transaction) -> list[recover.Takeover]:
        ended = recover.take_away(
            tx, tx.all("find_all_leases", limit=1000), because="its process is gone", orphaned=True
        )
        _count(tx, len(ended))
        return ended

    def abandon(tx: Transaction) -> list[str]:
        unstarted = slots.abandon(tx, lambda claimed_by: claimed_by != worker.id, because=STARTUP)
        _count(tx, len(unstarted))
        return unstarted

    total = _told_unstarted(runtime.do(abandon))
    while ended := runtime.do(end):
        total += _told(ended)
    if total:
        log.warning("%d runs that a lost process left behind were recovered", total)


def _count(tx: Transaction, runs: int) -> None:
    for _ in range(runs):
        tx.count(STARTUP)


def _told(taken: list[recover.Takeover]) -> int:
    for takeover in taken:
        log.warning("%s", takeover)
    return len(taken)


def _told_unstarted(run_ids: list[str]) -> int:
    for run_id in run_ids:
        log.warning("run %s failed: its slot was claimed by a worker that is gone, and nobody had started it", run_id)
    return len(run_ids)
