"""Records server: run the application in its own process, which a test can query, kill and restart."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from apps.shared.tests.serving import ROOT, TIMEOUT, Site

SAMPLES = ROOT / "apps" / "records" / "samples"
UNFINISHED = ("QUEUED", "RUNNING")


class RecordsServer(Site):
    """A server with its worker, on its own folder, and the requests that a user makes."""

    def __init__(self, folder: Path, *, url: str | None = None, **settings: object) -> None:
        self.database = folder / "records.db"
        self.url = url or f"sqlite:///{quote(str(self.database))}"
        variables = {"RECORDS_SAMPLES": "false"} | {name.upper(): str(value) for name, value in settings.items()}
        super().__init__(folder, "apps.records.web:site", "--worker", url=self.url, settings=variables)

    def upload(self, content: bytes, name: str = "note.txt") -> dict[str, Any]:
        response = self.http.post("/documents", files={"file": (name, content)})
        assert response.status_code == 201, response.text
        document: dict[str, Any] = response.json()
        return document

    def process_again(self, document_id: str) -> dict[str, Any]:
        response = self.http.post(f"/documents/{document_id}/runs")
        assert response.status_code == 201, response.text
        run: dict[str, Any] = response.json()
        return run

    def run(self, run_id: str) -> Any:
        return self.get(f"/runs/{run_id}")

    def ended(self, run_id: str) -> Any:
        """Wait until the run has ended, and return it."""
        self._wait_for_event(run_id, "event: end")
        run = self.run(run_id)
        assert run["state"] not in UNFINISHED
        return run

    def running(self, run_id: str) -> Any:
        """Wait until the run has started, and return it."""
        self._wait_for_event(run_id, '"kind":"RUN_STARTED"')
        run = self.run(run_id)
        assert run["state"] == "RUNNING"
        return run

    def _wait_for_event(self, run_id: str, text: str) -> None:
        """Read the event stream of a run until a line contains the text; this is cheaper than polling."""
        deadline = time.monotonic() + TIMEOUT
        with self.http.stream("GET", f"/runs/{run_id}/events") as events:
            for line in events.iter_lines():
                assert time.monotonic() < deadline, f"run {run_id} did not send {text} in time"
                if text in line:
                    return
        raise AssertionError(f"run {run_id} never sent {text}")

    def cancel(self, run_id: str) -> None:
        assert self.http.post(f"/runs/{run_id}/cancel").status_code == 200

    def blob(self, document: dict[str, Any]) -> Path:
        digest: str = document["sha256"]
        return self.folder / "blobs" / digest[:2] / digest

    @contextlib.contextmanager
    def stuck(self, content: bytes) -> Iterator[dict[str, Any]]:
        """Upload a document whose stored file is a pipe: opening it blocks for ever, like a disk that hangs."""
        blob = self.blob({"sha256": hashlib.sha256(content).hexdigest()})
        blob.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(blob)
        try:
            yield self.upload(content)
        finally:
            blob.unlink()
            blob.write_bytes(content)
