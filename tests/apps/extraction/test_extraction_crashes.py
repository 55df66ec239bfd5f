"""kill -9 between any two steps, a worker that comes late, a watchdog in two processes: what was paid for is not paid
for again, and what was read is there whole or not at all. Both are counted at the servers and in the database."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.apps.extraction.conftest import Extraction, pdf, postgres_database, running
from tests.apps.extraction.services import Services
from tests.apps.serving import Child
from tests.postgres import PostgresServer
from tests.process.support import descendants, is_a_guardian, wait_for

pytestmark = pytest.mark.timeout(300)
FOUR_PAGES = [f"Page {number} is about something of its own." for number in range(4)]
PATIENT = {"EXTRACTION_MAX_ATTEMPTS": "20", "EXTRACTION_REQUEST_TIMEOUT": "100", "HOLDFAST_LEASE": "4"}


@pytest.fixture(scope="module")
def lite(services_here: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extraction]:
    with running(tmp_path_factory.mktemp("lite"), settings=services_here.settings | PATIENT) as found:
        yield found


@pytest.fixture(scope="module")
def postgres_app(
    postgres: PostgresServer, services_here: Services, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Extraction]:
    with postgres_database(postgres) as url:
        with running(tmp_path_factory.mktemp("pg"), url, settings=services_here.settings | PATIENT) as found:
            yield found


@contextlib.contextmanager
def another_worker(app: Extraction) -> Iterator[Child]:
    other = app.another()
    other.start()
    try:
        yield other
    finally:
        other.kill()


def billed_once(cloud: Services, document: dict[str, Any]) -> None:
    """One analysis, and each passage in one request that was answered."""
    assert cloud.counts["billed analyses"] == 1
    asked = Counter(text for body in cloud.bodies for text in body["input"])
    assert asked == Counter(chunk["text"] for chunk in document["chunks"])
    assert len(document["chunks"]) == 4


@pytest.mark.contract("X3", "X5")
def test_a_crash_between_any_two_steps_bills_nothing_twice(lite: Extraction, cloud: Services) -> None:
    """A request that comes to a service shows that the step before it was remembered: that is when the worker dies."""
    cloud.polls = 0
    gate = cloud.hold("analyze")
    document_id = lite.upload(pdf(*FOUR_PAGES))
    for what, after in (("result", 0), ("embeddings", 0), ("embeddings", 1), (None, 0)):
        wait_for(lambda gate=gate: gate.has_come, "the next step has begun", at_most=120)  # type: ignore[misc]
        lite.worker.kill()
        gate.open()
        if what is not None:
            gate = cloud.hold(what, after=after)
        lite.worker.start()
    document = lite.ended(document_id)
    assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 4), document["job"]
    assert [line.split(":")[0] for line in document["job"]["error_log"].splitlines()] == ["its worker was lost"] * 4
    billed_once(cloud, document)


@pytest.mark.contract("X3", "X5")
def test_a_crash_while_it_is_written_leaves_nothing_of_it(postgres_app: Extraction, cloud: Services) -> None:
    """All its rows are written, and a lock holds back the end of its job until its worker dies."""
    app = postgres_app
    with contextlib.closing(app.connect()) as connection:
        connection.execute("begin")
        connection.execute("lock table holdfast_outcomes in share mode")
        document_id = app.upload(pdf(*FOUR_PAGES))
        waiting = "select 1 from pg_locks where not granted and relation = 'holdfast_outcomes'::regclass"
        wait_for(lambda: connection.execute(waiting).fetchall(), "its rows are being written", at_most=120)
        seen = connection.execute("select pages from uploads where id = %s", [document_id]).fetchall()
        app.worker.kill()
        connection.execute("rollback")
    assert seen == [(None,)]  # as long as its job is not over, nothing of it is seen
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
@pytest.mark.parametrize("where", ["lite", "postgres_app"])
def test_a_worker_that_comes_late_changes_nothing(request: pytest.FixtureRequest, where: str, cloud: Services) -> None:
    """It sleeps past its lease with a request under way, and wakes up when another has done all of it.

    It has lost its guardian, which would have killed it before.
    """
    app: Extraction = request.getfixturevalue(where)
    gate = cloud.hold("embeddings")
    document_id = app.upload(pdf(*FOUR_PAGES))
    wait_for(lambda: gate.has_come, "it asks for its vectors", at_most=120)
    guardian = next(pid for pid in descendants(app.worker.pid) if is_a_guardian(pid))
    app.worker.signal(signal.SIGSTOP)
    os.kill(guardian, signal.SIGKILL)
    with another_worker(app):
        document = app.ended(document_id)
        assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 1)
        before = app.worker.log.stat().st_size
        gate.open()
        app.worker.signal(signal.SIGCONT)
        wait_for(lambda: "lease" in app.worker.log.read_text()[before:], "the late worker notices")
        assert app.document(document_id) == document


@pytest.mark.contract("X5")
def test_two_watchdogs_put_back_what_is_processed_for_too_long_once(
    lite: Extraction, services_here: Services, cloud: Services
) -> None:
    """Its worker lives and renews its lease; the request that it waits for does not end."""
    gate = cloud.hold("embeddings")
    # How long a document may be processed is said where it is submitted, and goes with its run to whoever runs it.
    hurried = services_here.settings | PATIENT | {"EXTRACTION_THRESHOLD": "5"}
    with running(lite.folder, lite.url, inside=True, settings=hurried) as other:
        document_id = other.upload(pdf(*FOUR_PAGES))
        wait_for(lambda: gate.has_come, "it asks for its vectors", at_most=120)
        assert lite.job(document_id)["status"] == "PROCESSING"
        document = lite.ended(document_id)
    assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 1), document["job"]
    assert "Timed out after 5 s" in document["job"]["error_log"]
