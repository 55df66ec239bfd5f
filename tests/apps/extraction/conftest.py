"""Fixtures: extraction as processes of its own, with services of the cloud that answer here."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reportlab.pdfgen.canvas import Canvas
from tests.apps.extraction.services import Services, services
from tests.apps.serving import Child, Site, until

ENDED = ("COMPLETED", "FAILED")


def pdf(*pages: str) -> bytes:
    """A PDF with these lines on its pages."""
    kept = io.BytesIO()
    canvas = Canvas(kept, invariant=1)
    for page in pages:
        for number, line in enumerate(page.splitlines()):
            canvas.drawString(60, 780 - 16 * number, line)
        canvas.showPage()
    canvas.save()
    return kept.getvalue()


class Extraction:
    """A site and a worker on one database."""

    def __init__(self, folder: Path, url: str, **settings: str) -> None:
        self.url = url
        quick = {"HOLDFAST_LEASE": "2", "HOLDFAST_TICK": "0.1", **settings}
        self.site = Site(folder, "apps.extraction.web:site", url=url, settings=quick)
        self.worker = Child(
            folder, "holdfast", "worker", "apps.extraction.engine:hf", "-q", "extraction", "-c", "4",
            url=url, ready=" serves ", settings=quick,
        )  # fmt: skip

    def start(self) -> None:
        self.site.start()
        self.worker.start()

    def stop(self) -> None:
        for child in (self.worker, self.site):
            if child.alive:
                child.kill()

    def upload(self, content: bytes, name: str = "a.pdf") -> str:
        answer = self.site.http.post("/documents", files={"file": (name, content)})
        assert answer.status_code == 200, answer.text
        assert answer.json()["status"] == "Processing"
        return str(answer.json()["id"])

    def document(self, document_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.site.get(f"/documents/{document_id}")
        return found

    def ended(self, document_id: str) -> dict[str, Any]:
        """The document, when its job has ended."""

        def look() -> dict[str, Any] | None:
            found = self.document(document_id)
            return found if found["job"]["status"] in ENDED else None

        return until(look, f"document {document_id} has ended")


Make = Callable[..., Extraction]


@pytest.fixture
def cloud() -> Iterator[Services]:
    with services() as made:
        yield made


@pytest.fixture
def extraction(tmp_path: Path) -> Iterator[Make]:
    """Makes one; all that were made are stopped in the end."""
    made: list[Extraction] = []

    def make(url: str | None = None, **settings: str) -> Extraction:
        made.append(Extraction(tmp_path, url or f"sqlite:///{tmp_path / 'work.db'}", **settings))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.stop()
