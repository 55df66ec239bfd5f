"""Job log: a log line for every job that starts and ends, read from `job_runs`.

A job runs in a process of its own, may be killed, may be found dead by the next worker: what is logged comes from the
audit log and not from the job, so that an end is told however it came.
"""

from __future__ import annotations

import json
import logging
import threading
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from apps.dailybrief import job_runs
from apps.dailybrief.job_runs import JobRun
from apps.dailybrief.logs import tell
from apps.shared.database import Database
from holdfast import Holdfast, HoldfastError

EVERY = 0.5  # seconds
LATE = timedelta(minutes=10)  # an end may become visible this long after the time that it bears


class JobLog:
    """Tells what happens from the moment it is made, until it is closed."""

    def __init__(self, hf: Holdfast, database: Database, *, since: datetime) -> None:
        self._hf, self._database, self._since = hf, database, since
        self._begun: set[str] = set()
        self._ended: set[str] = set()
        self._sign = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="job_log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Tell what is left, and stop."""
        self._stop.set()
        self._thread.join()
        self.look()

    def look(self) -> None:
        """Tell what is new. What began and ended since the last look is told as both."""
        with self._database.read() as session:
            found = job_runs.since(session, self._since)
        for run in found:
            if run.id not in self._begun:
                self._begun.add(run.id)
                tell("job_started", **_which(run))
            if run.finished_at is not None and run.id not in self._ended:
                self._ended.add(run.id)
                self._tell_end(run, run.finished_at)
                self._since = max(self._since, run.finished_at - LATE)
        still = {run.id for run in found}
        self._begun &= still
        self._ended &= still

    def _tell_end(self, run: JobRun, finished_at: datetime) -> None:
        level = logging.INFO if run.status == "success" else logging.ERROR
        duration = (finished_at - run.started_at).total_seconds()
        done = self._done(run.id) if run.status == "success" else {"rows": self._rows_so_far(run.id)}
        ending = {"status": run.status, "finished_at": finished_at, "duration": round(duration, 3)}
        tell("job_ended", level=level, **_which(run), **ending, **done, error=run.error_message)

    def _done(self, run_id: str) -> dict[str, Any]:
        """What the job says that it has done: `rows`, and its counts by name."""
        result = json.loads(self._hf.snapshot(run_id).result or "null")
        return result if isinstance(result, dict) else {}

    def _rows_so_far(self, run_id: str) -> int:
        """How many rows a job had written that did not come to its end, as it told on the way."""
        told = [event.data["done"] for event in self._hf.story(run_id) if event.kind == "PROGRESS"]
        return int(told[-1]) if told else 0

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            try:
                sign = self._hf.signs().runs
                if sign != self._sign:
                    self.look()
                    self._sign = sign
            except (HoldfastError, SQLAlchemyError) as error:
                tell("job_log_waits", level=logging.WARNING, error=str(error))


def _which(run: JobRun) -> dict[str, Any]:
    return {
        "job": run.job_name,
        "scheduled_for": run.scheduled_for,
        "run": run.id,
        "worker": run.worker_instance,
        "started_at": run.started_at,
    }
