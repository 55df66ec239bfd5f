"""Fixtures: run extraction in its own processes, with local servers in place of the cloud services."""

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
from apps.extraction.tests.services import Services, services
from apps.shared.tests.serving import Child, Site
from reportlab.pdfgen.canvas import Canvas
from tests.databases import new_name
from tests.postgres import PostgresServer
from tests.process.support import wait_for

ENDED = ("COMPLETED", "FAILED")


def pdf(*pages: str) -> bytes:
    """Make a PDF with these texts on its pages."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=1)
    for page in pages:
        for number, line in enumerate(page.splitlines()):
            canvas.drawString(60, 780 - 16 * number, line)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


class Extraction:
    """A site and a worker on one database. If `inside` is true, the worker runs in the process of the site."""

    def __init__(self, folder: Path, url: str, *, inside: bool = False, settings: Mapping[str, str]) -> None:
        self.folder, self.url = folder, url
        self._settings = {"HOLDFAST_LEASE": "2", "HOLDFAST_POLL_INTERVAL": "0.1", **settings}
        arguments = ("--worker", "-q", "extraction", "-c", "4") if inside else ()
        self.site = Site(folder, "apps.extraction.web:site", *arguments, url=url, settings=self._settings)
        self.worker = self.another()
        self._inside = inside

    def another(self) -> Child:
        """Return another worker on the same database, not started."""
        arguments = ("holdfast", "worker", "apps.extraction.jobs:hf", "-q", "extraction", "-c", "4")
        return Child(self.folder, *arguments, url=self.url, ready=" started on ", settings=self._settings)

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
        response = self.post(content, name)
        assert response.status_code == 200, response.text
        assert (response.json()["status"], response.json()["job"]["status"]) == ("Processing", "PENDING")
        return str(response.json()["id"])

    def document(self, document_id: str) -> dict[str, Any]:
        document: dict[str, Any] = self.site.get(f"/documents/{document_id}")
        return document

    def job(self, document_id: str) -> dict[str, Any]:
        job: dict[str, Any] = self.document(document_id)["job"]
        return job

    def ended(self, document_id: str) -> dict[str, Any]:
        """Wait until the job of the document has ended, and return the document."""

        def look() -> dict[str, Any] | None:
            document = self.document(document_id)
            return document if document["job"]["status"] in ENDED else None

        ended: dict[str, Any] = wait_for(look, f"document {document_id} has ended", at_most=120)
        return ended

    def documents(self) -> int:
        """Count the documents directly in the database."""
        return int(self.sql("select count(*) from uploads")[0][0])

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(self.connect()) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

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
    """Create a database for one test, because `create extension` changes a whole database."""
    name = new_name()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
        yield server.url_of(name)
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture(scope="module")
def cloud_servers() -> Iterator[Services]:
    with services() as servers:
        yield servers


@pytest.fixture
def cloud(cloud_servers: Services) -> Iterator[Services]:
    """The cloud servers, with no planned faults and all counters at zero."""
    cloud_servers.reset()
    yield cloud_servers
    cloud_servers.reset()
