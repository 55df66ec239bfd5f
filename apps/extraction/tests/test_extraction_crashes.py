"""Crashes: kill -9 between any two steps, a worker that resumes too late, and a job that takes too long.

Nothing is billed twice, and the results of a document are saved completely or not at all.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from apps.extraction.tests.conftest import Extraction, pdf, postgres_database, running
from apps.extraction.tests.services import Services
from apps.shared.tests.serving import Child
from tests.postgres import PostgresServer
from tests.process.support import descendants, is_a_guardian, wait_for

pytestmark = pytest.mark.timeout(300)
FOUR_PAGES = [f"Page {number} is about something of its own." for number in range(4)]
SLOW_REQUESTS = {"EXTRACTION_MAX_ATTEMPTS": "20", "EXTRACTION_REQUEST_TIMEOUT": "100", "HOLDFAST_LEASE": "4"}


@pytest.fixture(scope="module")
def sqlite_app(cloud_servers: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extraction]:
    with running(tmp_path_factory.mktemp("sqlite"), settings=cloud_servers.settings | SLOW_REQUESTS) as app:
        yield app


@pytest.fixture(scope="module")
def postgres_app(
    postgres: PostgresServer, cloud_servers: Services, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Extraction]:
    with postgres_database(postgres) as url:
        with running(tmp_path_factory.mktemp("pg"), url, settings=cloud_servers.settings | SLOW_REQUESTS) as app:
            yield app


@contextlib.contextmanager
def another_worker(app: Extraction) -> Iterator[Child]:
    other = app.another()
    other.start()
    try:
        yield other
    finally:
        other.kill()


def billed_once(cloud: Services, document: dict[str, Any]) -> None:
    """Check that one analysis was billed, and each passage once."""
    assert cloud.counts["billed analyses"] == 1
    embedded = Counter(text for body in cloud.bodies for text in body["input"])
    assert embedded == Counter(chunk["text"] for chunk in document["chunks"])
    assert len(document["chunks"]) == 4


@pytest.mark.contract("X3", "X5")
def test_a_crash_between_any_two_steps_bills_nothing_twice(sqlite_app: Extraction, cloud: Services) -> None:
    """The worker is killed when its next request arrives at a service, because the step before it is then stored."""
    cloud.polls = 0
    gate = cloud.hold("analyze")
    document_id = sqlite_app.upload(pdf(*FOUR_PAGES))
    for what, after in (("result", 0), ("embeddings", 0), ("embeddings", 1), (None, 0)):
        wait_for(lambda gate=gate: gate.arrived, "the next step has started", at_most=120)  # type: ignore[misc]
        sqlite_app.worker.kill()
        gate.open()
        if what is not None:
            gate = cloud.hold(what, after=after)
        sqlite_app.worker.start()
    document = sqlite_app.ended(document_id)
    assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 4), document["job"]
    assert [line.split(":")[0] for line in document["job"]["error_log"].splitlines()] == ["the worker was lost"] * 4
    billed_once(cloud, document)


@pytest.mark.contract("X3", "X5")
def test_a_crash_before_the_commit_leaves_no_results(postgres_app: Extraction, cloud: Services) -> None:
    """All rows are written, and a lock blocks the end of the job until its worker is killed."""
    app = postgres_app
    with contextlib.closing(app.connect()) as connection:
        connection.execute("begin")
        connection.execute("lock table holdfast_outcomes in share mode")
        document_id = app.upload(pdf(*FOUR_PAGES))
        waiting = "select 1 from pg_locks where not granted and relation = 'holdfast_outcomes'::regclass"
        wait_for(
            lambda: connection.execute(waiting).fetchall(),
            "the rows are written, and the outcome waits for the lock",
            at_most=120,
        )
        seen = connection.execute("select pages from uploads where id = %s", [document_id]).fetchall()
        app.worker.kill()
        connection.execute("rollback")
    assert seen == [(None,)]  # nothing is visible before the commit
    assert app.sql(f"select pages, embedding from uploads where id = '{document_id}'") == [(None, None)]
    assert app.sql("select count(*) from document_chunks") == [(0,)]
    assert app.sql("select status from documents") == [("Processing",)]
    app.worker.start()
    document = app.ended(document_id)
    assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 1)
    billed_once(cloud, document)
    assert app.sql("select status, attempts from document_processing_jobs") == [("COMPLETED", 1)]
    assert app.sql("select status, pages from documents where embedding is not null") == [("Processed", 4)]


@pytest.mark.contract("X3", "X5")
@pytest.mark.parametrize("fixture", ["sqlite_app", "postgres_app"])
def test_a_worker_that_resumes_after_its_lease_expired_changes_nothing(
    request: pytest.FixtureRequest, fixture: str, cloud: Services
) -> None:
    """A worker is stopped during a request, until its lease has expired and another worker has done the job.

    Its guardian is killed first, because it would kill the stopped worker.
    """
    app: Extraction = request.getfixturevalue(fixture)
    gate = cloud.hold("embeddings")
    document_id = app.upload(pdf(*FOUR_PAGES))
    wait_for(lambda: gate.arrived, "the worker requests vectors", at_most=120)
    guardian = next(pid for pid in descendants(app.worker.pid) if is_a_guardian(pid))
    app.worker.signal(signal.SIGSTOP)
    os.kill(guardian, signal.SIGKILL)
    with another_worker(app):
        document = app.ended(document_id)
        assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 1)
        before = app.worker.log.stat().st_size
        gate.open()
        app.worker.signal(signal.SIGCONT)
        wait_for(lambda: "lease" in app.worker.log.read_text()[before:], "the late worker has noticed")
        assert app.document(document_id) == document


@pytest.mark.contract("X5")
def test_a_job_that_takes_too_long_is_retried_once_by_two_processes(
    sqlite_app: Extraction, cloud_servers: Services, cloud: Services
) -> None:
    """Its worker is alive and renews the lease, but waits for a request that does not end."""
    gate = cloud.hold("embeddings")
    # The timeout is stored with the run when it is submitted, so it applies in every process.
    short_threshold = cloud_servers.settings | SLOW_REQUESTS | {"EXTRACTION_THRESHOLD": "5"}
    with running(sqlite_app.folder, sqlite_app.url, inside=True, settings=short_threshold) as other:
        document_id = other.upload(pdf(*FOUR_PAGES))
        wait_for(lambda: gate.arrived, "the worker requests vectors", at_most=120)
        assert sqlite_app.job(document_id)["status"] == "PROCESSING"
        document = sqlite_app.ended(document_id)
    assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 1), document["job"]
    assert "Timed out after 5 s" in document["job"]["error_log"]
