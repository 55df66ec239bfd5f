"""Fixtures: extraction as processes of its own, with services of the cloud that answer here."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pysqlite3.dbapi2 as pysqlite3
import pytest
from reportlab.pdfgen.canvas import Canvas
from tests.apps.extraction.services import Services, services
from tests.apps.serving import Child, Site
from tests.databases import new_name
from tests.postgres import PostgresServer
from tests.process.support import wait_for

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
    """A site and a worker on one database; `inside` has the site be the worker, too."""

    def __init__(self, folder: Path, url: str, *, inside: bool = False, settings: Mapping[str, str]) -> None:
        self.folder, self.url = folder, url
        self._quick = {"HOLDFAST_LEASE": "2", "HOLDFAST_TICK": "0.1", **settings}
        arguments = ("--worker", "-q", "extraction", "-c", "4") if inside else ()
        self.site = Site(folder, "apps.extraction.web:site", *arguments, url=url, settings=self._quick)
        self.worker = self.another()
        self._inside = inside

    def another(self) -> Child:
        """Another worker of the same database."""
        arguments = ("holdfast", "worker", "apps.extraction.jobs:hf", "-q", "extraction", "-c", "4")
        return Child(self.folder, *arguments, url=self.url, ready=" serves ", settings=self._quick)

    def start(self) -> None:
        self.site.start()
        if not self._inside:
            self.worker.start()

    def stop(self) -> None:
        for child in (self.worker, self.site):
            if child.alive:
                child.kill()

    def post(self, content: bytes, name: str = "a.pdf") -> httpx.Response:
        return self.site.http.post("/documents", files={"file": (name, content)})

    def upload(self, content: bytes, name: str = "a.pdf") -> str:
        answer = self.post(content, name)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["status"], answer.json()["job"]["status"]) == ("Processing", "PENDING")
        return str(answer.json()["id"])

    def document(self, document_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.site.get(f"/documents/{document_id}")
        return found

    def job(self, document_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.document(document_id)["job"]
        return found

    def ended(self, document_id: str) -> dict[str, Any]:
        """The document, when its job has ended."""

        def look() -> dict[str, Any] | None:
            found = self.document(document_id)
            return found if found["job"]["status"] in ENDED else None

        ended: dict[str, Any] = wait_for(look, f"document {document_id} has ended", at_most=120)
        return ended

    def documents(self) -> int:
        """How many rows there are, by SQL of our own."""
        return int(self.sql("select count(*) from uploads")[0][0])

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(self.connect()) as connection:
            found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def connect(self) -> Any:
        if self.url.startswith("sqlite"):
            return pysqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)
        return psycopg.connect(self.url, autocommit=True)


@contextlib.contextmanager
def running(
    folder: Path, url: str | None = None, *, inside: bool = False, settings: Mapping[str, str]
) -> Iterator[Extraction]:
    app = Extraction(folder, url or f"sqlite:///{folder / 'work.db'}", inside=inside, settings=settings)
    try:
        app.start()
        yield app
    finally:
        app.stop()


@contextlib.contextmanager
def postgres_database(server: PostgresServer) -> Iterator[str]:
    """A database of its own: `create extension` is for a whole one."""
    name = new_name()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
        yield server.url_of(name)
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture(scope="module")
def services_here() -> Iterator[Services]:
    with services() as made:
        yield made


@pytest.fixture
def cloud(services_here: Services) -> Iterator[Services]:
    """The services, as if no one had asked them anything."""
    services_here.reset()
    yield services_here
    services_here.reset()
