"""Serving: the archive as a process of its own, which a test can ask, kill and start again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.apps.serving import PATIENCE, ROOT, Site

SAMPLES = ROOT / "apps" / "records" / "samples"
OPEN = ("QUEUED", "RUNNING")


class Served(Site):
    """One server with its worker on a folder of its own, and what a visitor does there."""

    def __init__(self, folder: Path, *, url: str | None = None, **settings: object) -> None:
        self.database = folder / "records.db"
        self.url = url or f"sqlite:///{quote(str(self.database))}"
        given = {"RECORDS_SAMPLES": "false"} | {name.upper(): str(value) for name, value in settings.items()}
        super().__init__(folder, "apps.records.web:site", "--worker", url=self.url, settings=given)

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

    def run(self, run_id: str) -> Any:
        return self.get(f"/runs/{run_id}")

    def ended(self, run_id: str) -> Any:
        """The run, once it has ended."""
        self._told(run_id, "event: end")
        run = self.run(run_id)
        assert run["state"] not in OPEN
        return run

    def running(self, run_id: str) -> Any:
        self._told(run_id, '"kind":"RUN_STARTED"')
        run = self.run(run_id)
        assert run["state"] == "RUNNING"
        return run

    def _told(self, run_id: str, what: str) -> None:
        """Listen to a run until this is told: cheaper than to ask again and again."""
        over_at = time.monotonic() + PATIENCE
        with self.http.stream("GET", f"/runs/{run_id}/events") as events:
            for line in events.iter_lines():
                assert time.monotonic() < over_at, f"run {run_id} did not tell {what} in time"
                if what in line:
                    return
        raise AssertionError(f"run {run_id} never told {what}")

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
