"""Cloud services: what happens when they succeed and fail, and what is billed; called through their official SDKs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from apps.extraction.tests.conftest import Extraction, pdf, running
from apps.extraction.tests.services import DIMENSIONS, KEY, Fault, Services
from tests.process.support import wait_for

TWO_PAGES = ("First paragraph, about whales.", "Second page, about boats.")


@pytest.fixture(scope="module")
def app(cloud_servers: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extraction]:
    with running(tmp_path_factory.mktemp("cloud"), inside=True, settings=cloud_servers.settings) as app:
        yield app


@pytest.mark.contract("X1", "X2", "X3", "X6")
def test_a_document_is_read_by_cloud_services_and_saved(app: Extraction, cloud: Services) -> None:
    cloud.polls = 2
    document = app.ended(app.upload(pdf(*TWO_PAGES, "Third page: seals.")))
    assert (document["status"], document["job"]["status"], document["job"]["attempts"]) == ("Processed", "COMPLETED", 0)
    assert document["job"]["completed_at"] > document["job"]["started_at"]
    assert document["job"]["error_log"] is None
    assert [(field["name"], field["value"]) for field in document["fields"]] == [("Customer", "Ada"), ("Colour", "red")]
    assert [chunk["page"] for chunk in document["chunks"]] == [1, 2, 3]
    assert cloud.counts["billed analyses"] == 1
    assert cloud.counts["result"] == 3  # two polls found it unfinished
    assert cloud.counts["billed passages"] == 3
    assert [len(body["input"]) for body in cloud.bodies] == [2, 1]  # batches of two
    [passage] = app.site.get("/search", q="First paragraph, about whales.", limit=1)["passages"]
    assert passage["text"] == "First paragraph, about whales."


@pytest.mark.contract("X4")
def test_failed_calls_are_retried_and_logged(app: Extraction, cloud: Services) -> None:
    wrong = Fault(200, body=b'{"status": "succeeded", "analyzeResult": {"pages": 7}}')
    cloud.plan("analyze", Fault(500), Fault(hang=True))
    cloud.plan("result", wrong)
    cloud.plan("embeddings", Fault(503, body=b"not even JSON"))
    document = app.ended(app.upload(pdf(*TWO_PAGES)))
    assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 4)
    log = document["job"]["error_log"].splitlines()
    assert [line.split(":")[0] for line in log] == ["documents", "documents", "documents", "embeddings"]
    assert "HTTP 500" in log[0]
    assert "Timeout" in log[1]
    assert "malformed" in log[2]
    assert "HTTP 503" in log[3]
    assert cloud.counts["billed analyses"] == 1  # it was started once, and its result requested again
    shown = {tuple(row) for row in app.sql("select status, attempts from document_processing_jobs")}
    assert ("COMPLETED", 4) in shown  # SQL clients see the same


@pytest.mark.contract("X4")
@pytest.mark.parametrize(("end", "error"), [("failed", "the analysis failed"), ("gone", "no longer exists: HTTP 404")])
def test_a_failed_or_lost_analysis_is_started_again(app: Extraction, cloud: Services, end: str, error: str) -> None:
    cloud.ends.append(end)
    document = app.ended(app.upload(pdf(*TWO_PAGES)))
    assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 1)
    assert error in document["job"]["error_log"]
    assert cloud.counts["billed analyses"] == 2
    events = app.site.get(f"/holdfast/api/runs/{document['job']['id']}/events")["events"]
    assert [event["kind"] for event in events].count("STEP_FORGOTTEN") == 1


@pytest.mark.contract("X4")
def test_an_analysis_that_always_fails_is_started_once_per_attempt(app: Extraction, cloud: Services) -> None:
    cloud.ends.extend(["failed"] * 9)
    job = app.ended(app.upload(pdf(*TWO_PAGES)))["job"]
    assert (job["status"], job["attempts"]) == ("FAILED", 5)
    assert cloud.counts["billed analyses"] == 5


@pytest.mark.contract("X4")
def test_a_slow_analysis_is_waited_for_and_billed_once(app: Extraction, cloud: Services) -> None:
    cloud.polls = 12
    job = app.ended(app.upload(pdf(*TWO_PAGES)))["job"]
    assert (job["status"], job["attempts"], job["error_log"]) == ("COMPLETED", 0, None)
    assert (cloud.counts["billed analyses"], cloud.counts["result"]) == (1, 13)


@pytest.mark.contract("X4", "X5")
def test_an_analysis_that_never_ends_is_started_again_after_the_threshold(cloud: Services, tmp_path: Path) -> None:
    cloud.polls = 0
    cloud.ends.append("never")
    settings = cloud.settings | {"EXTRACTION_THRESHOLD": "4"}
    with running(tmp_path, inside=True, settings=settings) as app:
        job = app.ended(app.upload(pdf(*TWO_PAGES)))["job"]
    assert (job["status"], cloud.counts["billed analyses"]) == ("COMPLETED", 2)
    assert "the analysis has not ended within 0:00:04" in job["error_log"]


@pytest.mark.contract("X4")
@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("result", b"[]"),
        ("result", b'{"status": "odd"}'),
        ("result", b'{"status": "succeeded"}'),
        ("result", b'{"status": "succeeded", "analyzeResult": {"pages": [{"pageNumber": 1}, {"pageNumber": 1}]}}'),
        ("result", b'{"status": "succeeded", "analyzeResult": {"pages": [{"pageNumber": "one"}]}}'),
        ("analyze", b'{"no": "Operation-Location"}'),
        ("embeddings", b'{"object": "list", "data": []}'),
        ("embeddings", json.dumps({"data": [{"index": n, "embedding": [1.0, 2.0]} for n in (0, 1)]}).encode()),
        ("embeddings", json.dumps({"data": [{"index": 0, "embedding": [1.0] * DIMENSIONS}] * 2}).encode()),
    ],
)  # fmt: skip
def test_a_malformed_response_is_only_a_failed_attempt(
    app: Extraction, cloud: Services, what: str, answer: bytes
) -> None:
    cloud.plan(what, Fault(202 if what == "analyze" else 200, body=answer))
    document = app.ended(app.upload(pdf(*TWO_PAGES)))
    assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 1)
    assert len(document["job"]["error_log"].splitlines()) == 1
    assert len(document["chunks"]) == 2


def test_an_operation_on_another_host_is_not_followed(app: Extraction, cloud: Services) -> None:
    """The key would be sent to that host."""
    cloud.plan("analyze", Fault(202, {"Operation-Location": "http://elsewhere.invalid/results/1"}, b""))
    document = app.ended(app.upload(pdf(*TWO_PAGES)))
    assert "no valid Operation-Location" in document["job"]["error_log"]


@pytest.mark.contract("X4")
def test_a_document_fails_after_its_last_attempt(app: Extraction, cloud: Services) -> None:
    cloud.plan("analyze", *[Fault(500)] * 10)
    document = app.ended(app.upload(pdf(*TWO_PAGES)))
    job = document["job"]
    assert (document["status"], job["status"], job["attempts"]) == ("Failed", "FAILED", 5)
    assert len(job["error_log"].splitlines()) == 5
    assert cloud.counts["analyze"] == 5
    assert (document["fields"], document["chunks"]) == ([], [])
    cloud.reset()
    response = app.site.http.post(f"/documents/{document['id']}/jobs")
    assert response.status_code == 200
    again = app.ended(document["id"])
    assert (again["job"]["status"], again["job"]["attempts"], again["job"]["error_log"]) == ("COMPLETED", 0, None)


@pytest.mark.contract("X4")
@pytest.mark.parametrize("code", ["PasswordProtected", "InvalidContent"])
def test_a_document_that_the_service_refuses_is_not_sent_again(app: Extraction, cloud: Services, code: str) -> None:
    inner = {"code": "InvalidRequest", "innererror": {"code": code}}
    if code == "InvalidContent":
        cloud.plan("analyze", Fault(400, body=json.dumps({"error": inner}).encode()))
    else:
        cloud.failed = inner
    job = app.ended(app.upload(pdf(*TWO_PAGES)))["job"]
    expected = "ENCRYPTED" if code == "PasswordProtected" else "UNREADABLE"
    assert (job["status"], job["attempts"], job["failure_type"]) == ("FAILED", 1, expected)
    assert code in job["error_log"]


@pytest.mark.contract("X4")
@pytest.mark.parametrize("what", ["analyze", "embeddings"])
def test_a_rate_limited_job_waits_without_a_worker(app: Extraction, cloud: Services, what: str) -> None:
    cloud.plan(what, Fault(429, {"Retry-After": "2"}, b'{"error": {"code": "429", "message": "slow down"}}'))
    first = app.upload(pdf("A document that has to wait."))
    failed = wait_for(lambda: job if (job := app.job(first))["attempts"] else None, "the first attempt has failed")
    assert failed["status"] == "PENDING"
    second = app.ended(app.upload(pdf("Another document.")))  # the worker is free meanwhile
    assert second["job"]["status"] == "COMPLETED"
    document = app.ended(first)
    assert cloud.times[what][-1] - cloud.times[what][0] >= 2
    assert (document["job"]["status"], document["job"]["attempts"]) == ("COMPLETED", 1)
    assert "HTTP 429" in document["job"]["error_log"]


def test_hostile_text_is_cleaned_and_stored(app: Extraction, cloud: Services) -> None:
    """NUL and surrogates, which a database refuses, and a character that reverses the direction of the text."""
    text = "NUL:\x00 surrogate:\ud800 reversed:\u202e <b>bold</b>"
    page = {"pageNumber": 1, "lines": [{"content": text}]}
    pair = {"key": {"content": "Na\x00me"}, "value": {"content": "\x00Ada\ud800"}, "confidence": 0.5}
    result = {"status": "succeeded", "analyzeResult": {"pages": [page], "keyValuePairs": [pair]}}
    cloud.plan("result", Fault(200, body=json.dumps(result).encode()))
    document = app.ended(app.upload(pdf("x"), "na\x00me \u202e.pdf"))
    assert document["job"]["status"] == "COMPLETED", document["job"]
    assert [chunk["text"] for chunk in document["chunks"]] == ["NUL: surrogate:\ufffd reversed: <b>bold</b>"]
    assert [(field["name"], field["value"]) for field in document["fields"]] == [("Name", "Ada\ufffd")]


def test_no_response_event_or_log_contains_a_key(app: Extraction, cloud: Services) -> None:
    cloud.plan("analyze", Fault(401, body=b'{"error": {"code": "401", "message": "wrong key ' + KEY.encode() + b'"}}'))
    cloud.plan("embeddings", Fault(401, body=b'{"error": {"message": "wrong key ' + KEY.encode() + b'"}}'))
    document = app.ended(app.upload(pdf(*TWO_PAGES)))
    run = app.site.http.get(f"/holdfast/api/runs/{document['job']['id']}/events").text
    assert document["job"]["attempts"] == 2
    assert KEY not in json.dumps(document) + run + app.site.log.read_text()


def test_a_search_fails_with_503_when_the_embedder_fails(app: Extraction, cloud: Services) -> None:
    cloud.plan("embeddings", Fault(500))
    response = app.site.http.get("/search", params={"q": "whales"})
    assert (response.status_code, response.json()["code"]) == (503, "embeddings_unavailable")
    assert app.site.http.get("/search", params={"q": "whales"}).status_code == 200
