"""Worker loop: what the worker does from its start to its end.

take the name ──▶ recover what the one before left ──▶ schedule and run ──▶ SIGTERM: finish, give the name back
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime

from apps.dailybrief import job_runs, jobs, logs, services
from apps.dailybrief.job_log import JobLog
from apps.dailybrief.schedules import QUEUE
from apps.shared.stop_signal import stop_event
from holdfast import HoldfastError, WorkerExists

EXIT_EXISTS, EXIT_LOST = 3, 1
WAIT = 60  # seconds for a database that restarts or is not up yet
PLACES = 4  # one for each job: none has a second run


def begin() -> int:
    """Work until a signal comes, or until someone else has the name; the exit code."""
    services.become(services.WORKER)
    stop = stop_event()
    with jobs.hf:
        try:
            jobs.hf.start(wait=WAIT)
            jobs.prepare()
            return work(stop)
        except WorkerExists as error:
            logs.tell("worker_refused", level=logging.ERROR, code=error.code, error=str(error))
            return EXIT_EXISTS
        except HoldfastError as error:
            logs.tell("worker_lost", level=logging.ERROR, code=error.code, error=str(error))
            return EXIT_LOST


def work(stop: threading.Event) -> int:
    """Be the worker until told to stop, or until the name is lost."""
    hf = jobs.hf
    began_at = hf.clock.now()
    worker = hf.worker(
        queues=[QUEUE],
        concurrency=PLACES,
        exclusive=services.WORKER,
        unknown=jobs.settings.unknown_instances,
        schedules=True,
    )
    worker.start()
    tell_recovery(began_at)
    job_log = JobLog(hf, jobs.database, since=began_at)
    job_log.start()
    logs.tell("worker_ready", worker=worker.id, jobs=[schedule.name for schedule in hf.schedules.list()])
    while worker.alive and not stop.wait(0.2):
        pass
    lost = not worker.alive
    logs.tell("worker_stops", worker=worker.id, lost=lost)
    try:
        worker.join() if lost else worker.stop()
    finally:
        job_log.close()
    return EXIT_LOST if lost else 0


def tell_recovery(began_at: datetime) -> None:
    """Say what an earlier worker left running; it has been failed before anything was scheduled, and counted."""
    with jobs.database.read() as session:
        recovered = [run for run in job_runs.since(session, began_at) if run.error_message == job_runs.RECOVERED]
    logs.tell(
        job_runs.RECOVERED,
        level=logging.WARNING if recovered else logging.INFO,
        runs=len(recovered),
        jobs=[{"job": run.job_name, "scheduled_for": run.scheduled_for, "run": run.id} for run in recovered],
    )
