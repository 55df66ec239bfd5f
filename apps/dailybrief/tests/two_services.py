"""Starts the two services as processes on a database of their own, and serves the sample feeds."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, LiteralString
from zoneinfo import ZoneInfo

import httpx
import psycopg
from apps.dailybrief.samples.articles import NEWSPAPERS
from apps.dailybrief.samples.http_handler import feed_server
from psycopg.rows import dict_row
from tests.process.support import wait_for
from tests.python_process import PythonProcess

ROOT = Path(__file__).parent.parent.parent.parent
TOKEN = "0123456789abcdef-newsroom"
NEVER = "0 0 1 1 *"  # slots are only triggered by hand
PATIENCE = 150.0


class Process:
    """A process and its output."""

    def __init__(self, *command: str, log: Path, environment: dict[str, str], files: Sequence[int] = ()) -> None:
        self.log = log
        with open(log, "ab") as file:
            self.running = PythonProcess(
                [sys.executable, "-m", *command],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=ROOT,
                pass_fds=files,
            )

    @property
    def pid(self) -> int:
        return self.running.pid

    def json_lines(self) -> list[dict[str, Any]]:
        """The JSON lines of its output."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.json_lines() if line.get("event") == name]

    def kill(self) -> None:
        """Send SIGKILL."""
        self.running.kill()
        self.running.wait(timeout=PATIENCE)

    def end(self) -> int:
        """Send SIGTERM and return the exit code."""
        if self.running.poll() is None:
            self.running.send_signal(signal.SIGTERM)
        try:
            return self.running.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


class TwoServices:
    """Starts the services, sends them requests, and reads their database directly."""

    def __init__(self, folder: Path, *, url: str | None = None, **settings: str) -> None:
        self.folder, self.database, self._url = folder, folder / "news.db", url
        self.started: list[Process] = []
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "DAILYBRIEF_"))},
            "HOLDFAST_URL": url or f"sqlite:///{self.database}",
            "HOLDFAST_ARTIFACTS": str(folder / "artifacts"),
            "HOLDFAST_ADMIN_TOKEN": TOKEN,
            "HOLDFAST_LEASE": "3",
            "HOLDFAST_POLL_INTERVAL": "0.2",
            "DAILYBRIEF_ALLOW_PRIVATE_ADDRESSES": "true",
            "DAILYBRIEF_HOST_PAUSE": "0.01",
            "DAILYBRIEF_EMBEDDING": "text",
            **{f"DAILYBRIEF_{job}_AT": NEVER for job in ("INGESTION", "CLUSTERING", "RETENTION", "PUBLISHING")},
            "PYTHONUNBUFFERED": "1",
            **settings,
        }

    def start(self, *command: str, files: Sequence[int] = (), **environment: str) -> Process:
        log = self.folder / f"process-{len(self.started)}.log"
        self.started.append(Process(*command, log=log, environment=self.environment | environment, files=files))
        return self.started[-1]

    def web(self, *, workers: int = 2) -> Process:
        """Start Gunicorn and wait until it answers."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            fd, port = listening.fileno(), listening.getsockname()[1]
            command = ("gunicorn", "-c", "python:apps.dailybrief.gunicorn_config", "--bind", f"fd://{fd}")
            web = self.start(*command, "--workers", str(workers), files=[fd])
        self.url = f"http://127.0.0.1:{port}"
        # Don't reuse connections: Gunicorn closes idle ones after two seconds, and a request at that moment would fail.
        limits = httpx.Limits(max_keepalive_connections=0)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self.client = httpx.Client(base_url=self.url, headers=headers, timeout=20, limits=limits)
        wait_for(lambda: self._answers(), f"the web service answers; {web.log.read_text()}")
        return web

    def worker(self) -> Process:
        """Start a worker and wait until it is ready."""
        worker = self.start("apps.dailybrief.worker")
        wait_for(lambda: worker.events("worker_ready"), f"the worker is ready; see {worker.log}")
        return worker

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.client.get("/healthz").status_code == 200
        return False

    def get(self, path: str, **query: Any) -> Any:
        response = self.client.get(path, params=query)
        assert response.status_code == 200, response.text
        return response.json()

    def trigger(self, job: str, slot: datetime | None = None) -> httpx.Response:
        at = slot or datetime.now(UTC)
        return self.client.post("/job-runs", json={"job_name": job, "scheduled_for": at.isoformat()})

    def run(self, job: str, slot: datetime | None = None) -> dict[str, Any]:
        """Trigger a job, after any earlier run has ended; wait for its end and return its row."""

        def trigger() -> str | None:
            response = self.trigger(job, slot)
            assert response.status_code == 201 or response.json()["code"] == "still_running", response.text
            return response.json()["id"] if response.status_code == 201 else None

        run_id = wait_for(trigger, f"no other run of {job} is active")
        return self.ended(run_id)

    def ended(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = wait_for(
            lambda: next((row for row in self.rows() if row["id"] == run_id and row["finished_at"]), None),
            f"run {run_id} has ended",
        )
        return found

    @property
    def is_postgres(self) -> bool:
        return self._url is not None

    def rows(self) -> list[dict[str, Any]]:
        """The rows of `job_runs`, read by an SQL client without our code."""
        return self.select("select * from job_runs order by started_at, id")

    def select(self, question: LiteralString) -> list[dict[str, Any]]:
        if self._url is not None:
            with psycopg.connect(self._url, row_factory=dict_row) as client:
                return client.execute(question).fetchall()
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=20)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(question)]

    def close(self) -> None:
        if hasattr(self, "client"):
            self.client.close()
        for process in self.started:
            process.end()


@contextlib.contextmanager
def sample_feeds() -> Iterator[list[str]]:
    """Serve the sample feeds, and yield their URLs."""
    with feed_server(ZoneInfo("UTC")) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield [f"http://127.0.0.1:{server.server_port}/{paper.key}" for paper in NEWSPAPERS]
        server.shutdown()
        thread.join()
