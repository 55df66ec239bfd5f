"""The job history of a document: retention does not delete it; deleting the document does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from apps.extraction import samples, vectors
from apps.extraction.tests.conftest import Extraction, pdf, postgres_database, running
from tests.postgres import PostgresServer

from holdfast import Holdfast

SCAN = (Path(samples.__file__).parent / "scan.pdf").read_bytes()
JOBS = "select id, status, attempts, started_at, completed_at, failure_type, error_log from document_processing_jobs"
LATER = timedelta(days=4000)


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Extraction]:
    if request.param == "sqlite":
        with running(tmp_path, inside=True, settings={}) as app:
            yield app
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    with postgres_database(server) as url, running(tmp_path, url, inside=True, settings={}) as app:
        yield app


@pytest.mark.contract("X4", "X5")
def test_every_job_is_kept_as_long_as_its_document(app: Extraction) -> None:
    failed, read = app.ended(app.upload(SCAN, "scan.pdf")), app.ended(app.upload(pdf("Customer: Ada")))
    for document in (failed, read):
        assert app.site.http.post(f"/documents/{document['id']}/jobs").status_code == 200
        again = app.ended(document["id"])
        assert [job["id"] for job in again["jobs"]] == [again["job"]["id"], document["job"]["id"]]
    before = {document["id"]: app.document(document["id"]) for document in (failed, read)}
    rows = sorted(app.sql(JOBS))
    assert [row[1] for row in rows] == ["FAILED", "COMPLETED", "FAILED", "COMPLETED"]

    with Holdfast(app.url, sqlite_module=vectors.SQLITE) as hf:
        hf.prune(now=datetime.now(UTC) + LATER)

    assert sorted(app.sql(JOBS)) == rows
    assert {document_id: app.document(document_id) for document_id in before} == before
    for job in before[failed["id"]]["jobs"]:
        assert (job["status"], job["attempts"], job["failure_type"]) == ("FAILED", 1, "IMAGE_ONLY")
        assert "images without text" in job["error_log"]
        assert job["completed_at"] > job["started_at"]
    page = app.site.http.get(f"/documents/{failed['id']}", headers={"Accept": "text/html"}).text
    assert "Earlier runs" in page
    assert page.count("images without text") == 2

    assert app.site.http.delete(f"/documents/{failed['id']}").status_code == 204
    assert {row[0] for row in app.sql(JOBS)} == {job["id"] for job in before[read["id"]]["jobs"]}
    assert app.sql("select count(*) from document_runs") == [(2,)]
