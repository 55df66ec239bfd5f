"""Job log: logs the start and the end of every job, as recorded in `job_runs`.

A job can't log its own end if its process is killed or its worker dies, so the lines come from the audit log.
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
from apps.dailybrief.logs import log_event
from apps.shared.database import Database
from holdfast import Holdfast, HoldfastError

INTERVAL = 0.5  # seconds
MAX_LATENESS = timedelta(minutes=10)  # a row may become visible this long after its `finished_at`


class JobLog:
    """Logs the job runs that start or end between its creation and `close`."""

    def __init__(self, hf: Holdfast, database: Database, *, since: datetime) -> None:
        self._hf, self._database, self._since = hf, database, since
        self._started: set[str] = set()
        self._ended: set[str] = set()
        self._last_change = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="job_log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop the thread, and log the remaining changes."""
        self._stop.set()
        self._thread.join()
        self.log_changes()

    def log_changes(self) -> None:
        """Log each run that has started or ended since the last call; a run that did both gets two lines."""
        with self._database.read() as session:
            found = job_runs.since(session, self._since)
        for run in found:
            if run.id not in self._started:
                self._started.add(run.id)
                log_event("job_started", **_fields(run))
            if run.finished_at is not None and run.id not in self._ended:
                self._ended.add(run.id)
                self._log_end(run, run.finished_at)
                self._since = max(self._since, run.finished_at - MAX_LATENESS)
        current = {run.id for run in found}
        self._started &= current
        self._ended &= current

    def _log_end(self, run: JobRun, finished_at: datetime) -> None:
        level = logging.INFO if run.status == "success" else logging.ERROR
        duration = (finished_at - run.started_at).total_seconds()
        counts = self._result(run.id) if run.status == "success" else {"rows": self._rows_so_far(run.id)}
        outcome = {"status": run.status, "finished_at": finished_at, "duration": round(duration, 3)}
        log_event("job_ended", level=level, **_fields(run), **outcome, **counts, error=run.error_message)

    def _result(self, run_id: str) -> dict[str, Any]:
        """The counts that the job returned: `rows`, and others by name."""
        result = json.loads(self._hf.snapshot(run_id).result or "null")
        return result if isinstance(result, dict) else {}

    def _rows_so_far(self, run_id: str) -> int:
        """How many rows a failed job had written, from its last progress report."""
        progress = [event.data["done"] for event in self._hf.timeline(run_id) if event.kind == "PROGRESS"]
        return int(progress[-1]) if progress else 0

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL):
            try:
                change = self._hf.change_marker()
                if change != self._last_change:
                    self.log_changes()
                    self._last_change = change
            except (HoldfastError, SQLAlchemyError) as error:
                log_event("job_log_delayed", level=logging.WARNING, error=str(error))


def _fields(run: JobRun) -> dict[str, Any]:
    return {
        "job": run.job_name,
        "scheduled_for": run.scheduled_for,
        "run": run.id,
        "worker": run.worker_instance,
        "started_at": run.started_at,
    }
