"""Serving: the archive as a process of its own, which a test can ask, kill and start again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "apps" / "records" / "samples"
TOKEN = "a-token-that-only-these-tests-know"
PATIENCE = 60.0
OPEN = ("QUEUED", "RUNNING")
T = TypeVar("T")


def until(look: Callable[[], T | None], what: str, *, within: float = PATIENCE) -> T:
    """What `look` gives, as soon as it gives something."""
    over_at = time.monotonic() + within
    while not (found := look()):
        assert time.monotonic() < over_at, f"not in time: {what}"
        time.sleep(0.05)
    return found


class Served:
    """One server with its worker on a folder of its own.

    start, kill, stop   the process
    http                a client with an admin's token
    """

    def __init__(self, folder: Path, *, url: str | None = None, **settings: object) -> None:
        self.folder, self.database = folder, folder / "records.db"
        self.url = url or f"sqlite:///{self.database}"
        self._settings = {name.upper(): str(value) for name, value in settings.items()}
        self._process: subprocess.Popen[str] | None = None
        self.log = folder / "server.log"
        self.http = httpx.Client()

    def start(self) -> None:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "RECORDS_", "APP_"))
        }
        environment |= {
            "HOLDFAST_URL": self.url,
            "HOLDFAST_ARTIFACTS": str(self.folder / "artifacts"),
            "HOLDFAST_TOKEN": TOKEN,
            "HOLDFAST_KILL_GRACE": "0.3",
            "HOLDFAST_SHUTDOWN_GRACE": "1",
            "APP_FOLDER": str(self.folder),
            **self._settings,
        }
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "holdfast", "serve", "apps.records.web:site", "--worker", "--port", "0"],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                stdin=subprocess.DEVNULL,
                text=True,
            )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline().strip() if ready else ""
        assert line.startswith("http://"), f"it did not start: {self.log.read_text()[-2000:]}"
        self.address = line.rstrip("/")
        self.http = httpx.Client(
            base_url=self.address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE, trust_env=False
        )
        until(self._answers, "it answers")

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.http.get("/healthz").status_code == 200
        return False

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """kill -9: it is gone without a word."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        if self._process is None:
            return 0
        self.http.close()
        self._process.send_signal(number)
        try:
            code = self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return code

    # What a visitor does

    def hand_in(self, content: bytes, name: str = "note.txt") -> dict[str, Any]:
        answer = self.http.post("/documents", files={"file": (name, content)})
        assert answer.status_code == 201, answer.text
        document: dict[str, Any] = answer.json()
        return document

    def again(self, document_id: str) -> dict[str, Any]:
        answer = self.http.post(f"/documents/{document_id}/runs")
        assert answer.status_code == 201, answer.text
        run: dict[str, Any] = answer.json()
        return run

    def get(self, path: str) -> Any:
        answer = self.http.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def run(self, run_id: str) -> Any:
        return self.get(f"/runs/{run_id}")

    def ended(self, run_id: str) -> Any:
        """The run, once it has ended."""

        def look() -> Any:
            run = self.run(run_id)
            return None if run["state"] in OPEN else run

        return until(look, f"run {run_id} has ended")

    def running(self, run_id: str) -> Any:
        return until(lambda: (run := self.run(run_id))["state"] == "RUNNING" and run, f"run {run_id} is running")

    def cancel(self, run_id: str) -> None:
        assert self.http.post(f"/runs/{run_id}/cancel").status_code == 200

    def blob(self, document: dict[str, Any]) -> Path:
        digest: str = document["sha256"]
        return self.folder / "blobs" / digest[:2] / digest

    @contextlib.contextmanager
    def stuck(self, content: bytes) -> Iterator[dict[str, Any]]:
        """A document whose file never comes to an end: whoever opens it waits for ever, as on a disk that hangs."""
        blob = self.blob({"sha256": hashlib.sha256(content).hexdigest()})
        blob.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(blob)
        try:
            yield self.hand_in(content)
        finally:
            blob.unlink()
            blob.write_bytes(content)


@contextlib.contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Served]:
    served = Served(folder, **settings)
    served.start()
    try:
        yield served
    finally:
        served.stop()
