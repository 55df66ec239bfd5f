"""Worker loop: what the worker process does, from start to exit.

claim the exclusive name ──▶ fail runs that the last worker left ──▶ schedule and run jobs ──▶ SIGTERM: finish, release
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
DATABASE_WAIT = 60  # seconds for a database that is starting
CONCURRENCY = 4  # one per job, because runs of a job never overlap


def run() -> int:
    """Work until a signal, or until another worker has taken the name; return the exit code."""
    services.declare(services.WORKER)
    stop = stop_event()
    with jobs.hf:
        try:
            jobs.hf.start(wait=DATABASE_WAIT)
            jobs.prepare()
            return work(stop)
        except WorkerExists as error:
            logs.log_event("worker_refused", level=logging.ERROR, code=error.code, error=str(error))
            return EXIT_EXISTS
        except HoldfastError as error:
            logs.log_event("worker_lost", level=logging.ERROR, code=error.code, error=str(error))
            return EXIT_LOST


def work(stop: threading.Event) -> int:
    """Schedule and run jobs until `stop` is set, or until the exclusive name is lost."""
    hf = jobs.hf
    began_at = hf.clock.now()
    worker = hf.worker(
        queues=[QUEUE],
        concurrency=CONCURRENCY,
        exclusive=services.WORKER,
        unknown=jobs.settings.unknown_instances,
        schedules=True,
    )
    worker.start()
    log_recovery(began_at)
    job_log = JobLog(hf, jobs.database, since=began_at)
    job_log.start()
    logs.log_event("worker_ready", worker=worker.id, jobs=[schedule.name for schedule in hf.schedules.list()])
    while worker.alive and not stop.wait(0.2):
        pass
    lost = not worker.alive
    logs.log_event("worker_stopping", worker=worker.id, lost=lost)
    try:
        worker.join() if lost else worker.stop()
    finally:
        job_log.close()
    return EXIT_LOST if lost else 0


def log_recovery(began_at: datetime) -> None:
    """Log the runs that an earlier worker left running and that have just been marked as failed."""
    with jobs.database.read() as session:
        recovered = [run for run in job_runs.since(session, began_at) if run.error_message == job_runs.RECOVERED]
    logs.log_event(
        job_runs.RECOVERED,
        level=logging.WARNING if recovered else logging.INFO,
        runs=len(recovered),
        jobs=[{"job": run.job_name, "scheduled_for": run.scheduled_for, "run": run.id} for run in recovered],
    )
