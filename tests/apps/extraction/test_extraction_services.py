"""What the services of the cloud do, well and badly, and what is billed: asked through their official SDKs."""

from __future__ import annotations

import signal
import time

import pytest
from tests.apps.extraction.conftest import Extraction, Make, pdf
from tests.apps.extraction.services import Fault, Services
from tests.apps.serving import until

TWO_PAGES = ("First paragraph, about whales.", "Second page, about boats.")


@pytest.fixture(params=["sqlite", "postgres"])
def here(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.mark.contract("X1", "X2", "X3", "X6")
def test_a_document_is_read_by_the_cloud_and_kept_all_at_once(here: str, extraction: Make, cloud: Services) -> None:
    cloud.polls = 2
    app = extraction(here, **cloud.settings)
    document = app.ended(app.upload(pdf(*TWO_PAGES, "Third page: seals.")))
    assert (document["status"], document["job"]["status"], document["job"]["attempts"]) == ("Processed", "COMPLETED", 0)
    assert document["job"]["completed_at"] > document["job"]["started_at"]
    assert document["job"]["error_log"] is None
    assert [(field["name"], field["value"]) for field in document["fields"]] == [("Customer", "Ada"), ("Colour", "red")]
    assert [chunk["page"] for chunk in document["chunks"]] == [1, 2, 3]
    assert cloud.counts["billed analyses"] == 1
    assert cloud.counts["result"] == 3  # two polls found it unfinished
    assert cloud.counts["billed passages"] == 3
    assert [len(asked["input"]) for asked in cloud.bodies] == [2, 1]  # batches of two
    [passage] = app.site.get("/search", q="First paragraph, about whales.", limit=1)["passages"]
    assert passage["text"] == "First paragraph, about whales."


@pytest.mark.contract("X4")
def test_what_fails_is_tried_again_and_says_what_happened(extraction: Make, cloud: Services) -> None:
    wrong = Fault(200, body=b'{"status": "succeeded", "analyzeResult": {"pages": 7}}')
    cloud.plan("analyze", Fault(500), Fault(hang=True))
    cloud.plan("result", wrong)
    cloud.plan("embeddings", Fault(503, body=b"not even JSON"))
    app = extraction(**cloud.settings)
    document = app.ended(app.upload(pdf(*TWO_PAGES)))
    assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 4)
    log = document["job"]["error_log"].splitlines()
    assert len(log) == 4, log
    assert [said.split(":")[0] for said in log] == ["documents", "documents", "documents", "embeddings"]
    assert "HTTP 500" in log[0]
    assert "HTTP 503" in log[3]
    assert cloud.counts["billed analyses"] == 1  # it was begun once, and its result asked for again


@pytest.mark.contract("X4")
def test_after_its_last_attempt_a_document_has_failed(extraction: Make, cloud: Services) -> None:
    cloud.plan("analyze", *[Fault(500)] * 10)
    app = extraction(**cloud.settings, EXTRACTION_MAX_ATTEMPTS="3", EXTRACTION_BREAKER_FAILURES="50")
    document = app.ended(app.upload(pdf(*TWO_PAGES)))
    job = document["job"]
    assert (document["status"], job["status"], job["attempts"]) == ("Failed", "FAILED", 3)
    assert len(job["error_log"].splitlines()) == 3
    assert cloud.counts["analyze"] == 3
    assert (document["fields"], document["chunks"]) == ([], [])


@pytest.mark.contract("X4")
def test_who_is_told_to_wait_waits_without_a_worker(extraction: Make, cloud: Services) -> None:
    cloud.plan("analyze", Fault(429, {"Retry-After": "2"}, b'{"error": {"code": "429", "message": "slow down"}}'))
    app = extraction(**cloud.settings)
    first = app.upload(pdf(*TWO_PAGES))
    until(lambda: app.document(first)["job"]["attempts"] == 1, "the first attempt has failed")
    asked_at = time.monotonic()
    assert app.document(first)["job"]["status"] == "PENDING"
    second = app.ended(app.upload(pdf("Another document.")))  # the worker is free meanwhile
    assert second["job"]["status"] == "COMPLETED"
    document = app.ended(first)
    assert time.monotonic() - asked_at > 1  # of the two seconds, less what passed until we saw it
    assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 1)
    assert "HTTP 429" in document["job"]["error_log"]


@pytest.mark.contract("X4")
def test_a_dead_service_does_not_use_up_attempts(extraction: Make, cloud: Services) -> None:
    """After some failures it is left alone: no call is made, no attempt is used; when it is back, all is read."""
    cloud.plan("analyze", *[Fault(500)] * 4)
    app = extraction(**cloud.settings, EXTRACTION_BREAKER_FAILURES="2", EXTRACTION_MAX_ATTEMPTS="4")
    documents = [app.ended(one) for one in [app.upload(pdf(f"Document {number}.")) for number in range(8)]]
    assert {document["job"]["status"] for document in documents} == {"COMPLETED"}
    # Those that had asked before it was known count, and one a pause that tries whether it is back.
    assert sum(document["job"]["attempts"] for document in documents) == 4
    assert cloud.counts["analyze"] == 12


@pytest.mark.contract("X3", "X6")
def test_a_crash_bills_nothing_twice(here: str, extraction: Make, cloud: Services) -> None:
    """kill -9 of the worker after each step that was remembered: what was paid for is not asked for again."""
    cloud.polls = 0
    app = extraction(here, **cloud.settings, EXTRACTION_MAX_ATTEMPTS="20")
    document_id = app.upload(pdf(*[f"Page {number}." for number in range(7)]))
    killed = 0
    while app.document(document_id)["job"]["status"] not in ("COMPLETED", "FAILED"):
        steps = _steps(app, document_id)
        if steps > killed and app.worker.alive:
            app.worker.kill()
            killed = steps
            app.worker.start()
    document = app.ended(document_id)
    assert document["job"]["status"] == "COMPLETED", document["job"]["error_log"]
    assert killed > 0
    assert cloud.counts["billed analyses"] == 1
    assert [chunk["number"] for chunk in document["chunks"]] == list(range(7))
    # A request that was under way when its worker died was not acknowledged; no remembered batch was asked for again.
    asked = [tuple(body["input"]) for body in cloud.bodies]
    assert len(asked) - len(set(asked)) <= killed


def _steps(app: Extraction, document_id: str) -> int:
    run = app.document(document_id)["job"]["id"]
    events = app.site.get(f"/holdfast/api/runs/{run}/events")["events"]
    return sum(event["kind"] == "STEP_FINISHED" for event in events)


@pytest.mark.contract("X5")
def test_a_worker_that_slept_past_its_lease_changes_nothing(extraction: Make, cloud: Services) -> None:
    cloud.plan("embeddings", Fault(hang=True))
    app = extraction(**cloud.settings, EXTRACTION_REQUEST_TIMEOUT="30")
    document_id = app.upload(pdf(*TWO_PAGES))
    until(lambda: cloud.counts["embeddings"] == 1, "it asks for its vectors")
    app.worker.signal(signal.SIGSTOP)
    other = Extraction(app.worker.folder, app.url, **cloud.settings).worker
    other.start()
    try:
        document = app.ended(document_id)
        assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 1)
        cloud.over.set()
        app.worker.signal(signal.SIGCONT)
        until(lambda: "lease" in app.worker.log.read_text(), "the late worker notices")
        assert app.document(document_id) == document
    finally:
        other.kill()
