"""The application as a process: the promises about its runs, tested over HTTP."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from apps.records.tests.records_server import SAMPLES, UNFINISHED, RecordsServer
from apps.records.tests.test_records_reading import PNG
from apps.shared.tests.serving import TOKEN
from tests.process.support import wait_for

LETTER = b"Dear Ms Webb,\n\nthank you for your letter of 3 May 2024.\n\nYours sincerely,\n\nPaul Grant\n"


def note(name: str) -> bytes:
    """Return a letter that no other test uploads."""
    return LETTER + name.encode()


@pytest.mark.contract("P1", "P11")
def test_an_upload_returns_at_once_and_the_document_is_processed_in_four_steps(server: RecordsServer) -> None:
    document = server.upload((SAMPLES / "invoice.pdf").read_bytes(), "invoice.pdf")
    assert (document["kind"], document["name"]) == ("pdf", "invoice.pdf")
    [first] = document["runs"]
    assert first["state"] in UNFINISHED  # the response did not wait for the run

    run = server.ended(first["id"])
    assert (run["state"], run["attempts"], run["failure_type"]) == ("SUCCEEDED", 1, None)
    steps = [(step["name"], step["state"], step["attempts"]) for step in run["steps"]]
    assert steps == [(name, "FINISHED", 1) for name in ("EXTRACT", "CLASSIFY", "INTERPRET", "VALIDATE")]
    kinds = [event["kind"] for event in run["events"] if event["kind"] not in ("PROGRESS", "LOG")]
    assert kinds == ["RUN_QUEUED", "RUN_STARTED", *["STEP_STARTED", "STEP_FINISHED"] * 4, "RUN_SUCCEEDED"]
    times = [event["happened_at"] for event in run["events"]]
    assert times == sorted(times)

    found = server.get(f"/documents/{document['id']}")
    assert (found["state"], found["document_class"]) == ("SUCCEEDED", "invoice")
    values = {field["name"]: (field["value"], field["unit"]) for field in found["fields"]}
    assert values["total"] == ("6247.50", "EUR")
    assert values["due_date"] == ("2026-09-28", None)
    pages = server.get(f"/runs/{first['id']}/pages")
    assert all(pages[one["page"] - 1][one["start"] : one["end"]] == one["text"] for one in found["fields"])
    assert server.http.get(f"/documents/{document['id']}/file").content == (SAMPLES / "invoice.pdf").read_bytes()


@pytest.mark.contract("P11")
def test_the_events_of_a_run_are_streamed_as_they_happen(server: RecordsServer) -> None:
    document = server.upload(note("events"))
    kinds = []
    with server.http.stream("GET", document_events(document), headers={"Accept": "text/event-stream"}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line == "event: end":
                break
            if line.startswith("data: "):
                kinds.append(json.loads(line.removeprefix("data: "))["kind"])
    assert kinds[0] == "RUN_QUEUED"
    assert kinds[-1] == "RUN_SUCCEEDED"
    assert kinds.count("STEP_FINISHED") == 4


def document_events(document: dict[str, Any]) -> str:
    return f"/runs/{document['runs'][0]['id']}/events"


@pytest.mark.contract("S4")
def test_an_upload_that_is_not_a_document_is_refused_with_a_code_and_changes_nothing(server: RecordsServer) -> None:
    before = server.get("/documents")["documents"][:1]
    files = sorted(server.folder.glob("blobs/*/*"))

    def refused(**request: Any) -> tuple[int, str]:
        response = server.http.post("/documents", **request)
        return response.status_code, response.json()["code"]

    assert refused(files={"file": ("report.pdf", PNG)}) == (415, "unsupported_type")
    assert refused(files={"file": ("Report.PDF", b"<html>Your session has expired.</html>")}) == (
        415,
        "unsupported_type",
    )
    assert refused(files={"file": ("a.txt", b"words " * 20_000 + bytes(50))}) == (415, "unsupported_type")
    assert refused(files={"file": ("a.txt", b"x" * 3_000_001)}) == (413, "body_too_large")
    assert refused(files={"file": ("a.txt", b"x" * 9_000_000)}) == (413, "body_too_large")
    assert refused(data={"file": "no file"}, files={}) == (415, "unsupported_type")
    assert refused(content=b"raw bytes") == (415, "unsupported_type")
    assert refused(files=[("a", ("1.txt", b"one")), ("b", ("2.txt", b"two"))]) == (413, "body_too_large")
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    assert refused(content=b"--x--\r\n", headers=form) == (422, "file_missing")
    assert refused(content=b"--x\r\nContent-Disposition: form-data", headers=form) == (400, "upload_broken")

    assert server.get("/documents")["documents"][:1] == before
    assert sorted(server.folder.glob("blobs/*/*")) == files


@pytest.mark.contract("S4")
def test_unknown_ids_and_missing_permissions_are_refused_with_a_code(server: RecordsServer) -> None:
    for path in ("/documents/nothing", "/documents/nothing/file"):
        response = server.http.get(path)
        assert (response.status_code, response.json()["code"]) == (404, "document_not_found")
    again = server.http.post("/documents/nothing/runs")
    assert (again.status_code, again.json()["code"]) == (404, "document_not_found")
    for path in ("/runs/nothing", "/runs/nothing/events", "/runs/nothing/pages"):
        response = server.http.get(path)
        assert (response.status_code, response.json()["code"]) == (404, "run_not_found")
    assert server.http.get("/documents?before=x").status_code == 422

    visitor = httpx.Client(base_url=server.address, trust_env=False)
    with visitor:
        for path in ("/documents", "/runs/x", "/", "/holdfast/api/runs", "/openapi.json"):
            assert visitor.get(path).status_code == 401
        assert visitor.post("/documents", files={"file": ("a.txt", b"a")}).status_code == 401
        created = server.http.post("/holdfast/api/tokens", json={"name": "reader", "role": "viewer"})
        visitor.headers["Authorization"] = f"Bearer {created.json()['token']}"
        assert visitor.get("/documents").status_code == 200
        assert visitor.post("/documents", files={"file": ("a.txt", b"a")}).status_code == 403


def test_a_file_name_is_only_displayed_and_never_used_as_a_path(server: RecordsServer) -> None:
    document = server.upload(note("name"), "../../etc/passwd\u202e<script>.txt")
    assert document["name"] == "passwd<script>.txt"
    assert server.blob(document).is_file()
    download = server.http.get(f"/documents/{document['id']}/file")
    assert download.headers["content-disposition"] == "attachment; filename*=UTF-8''passwd%3Cscript%3E.txt"
    assert download.headers["x-content-type-options"] == "nosniff"


BAD = {
    "locked.pdf": ((SAMPLES / "locked.pdf").read_bytes(), "ENCRYPTED"),
    "scan.pdf": ((SAMPLES / "scan.pdf").read_bytes(), "IMAGE_ONLY"),
    "cut-off.pdf": ((SAMPLES / "cut-off.pdf").read_bytes(), "TRUNCATED"),
    "empty.txt": (b"", "EMPTY"),
}


def test_an_unreadable_document_fails_with_its_reason_and_others_succeed(server: RecordsServer) -> None:
    documents = {name: server.upload(content, name) for name, (content, _) in BAD.items()}
    good = server.upload(note("among the bad"))
    for name, (_, failure_type) in BAD.items():
        run = server.ended(documents[name]["runs"][0]["id"])
        assert (name, run["state"], run["failure_type"]) == (name, "FAILED", failure_type)
        assert run["error"]
        assert "Traceback" not in run["error"]
        assert [step["state"] for step in run["steps"]] == ["FAILED", *["NOT_REACHED"] * 3]
        assert [step["started_at"] for step in run["steps"]] == [run["started_at"], None, None, None]
        assert "STEP_RETRIED" not in [event["kind"] for event in run["events"]]  # trying again would not help
    assert server.ended(good["runs"][0]["id"])["state"] == "SUCCEEDED"


@pytest.mark.contract("P2", "P3", "P4", "P9")
def test_fifty_concurrent_requests_for_one_document_run_one_after_the_other(server: RecordsServer) -> None:
    with server.stuck(note("fifty")) as document:
        [blocking] = document["runs"]
        server.running(blocking["id"])
        with ThreadPoolExecutor(25) as pool:
            submitted = list(pool.map(lambda _: server.process_again(document["id"]), range(50)))
        assert sorted(run["number"] for run in submitted) == list(range(2, 52))
        states = [run["state"] for run in server.get(f"/documents/{document['id']}")["runs"]]
        assert sorted(states) == ["QUEUED"] * 50 + ["RUNNING"]

        # A second lease written directly into the database is refused by a unique index.
        with contextlib.closing(sqlite3.connect(server.database)) as other:
            with pytest.raises(sqlite3.IntegrityError, match=r"(?i)unique"):
                other.execute(
                    "insert into holdfast_leases (run_id, job, queue, rank, run_key, claim, attempt, takeovers, "
                    "holder, started_at, expires_at) select ?, job, queue, rank, run_key, 1, 1, 0, 'by hand', "
                    "started_at, expires_at from holdfast_leases where run_id = ?",
                    (submitted[0]["id"], blocking["id"]),
                )
            other.rollback()

        in_order = sorted(submitted, key=lambda run: run["number"])
        for run in in_order[3:]:
            server.cancel(run["id"])  # each start takes a while, and a few runs are enough to show the order
    server.cancel(blocking["id"])
    assert server.ended(blocking["id"])["state"] == "CANCELLED"
    done = [server.ended(run["id"]) for run in in_order[:3]]
    assert [run["state"] for run in done] == ["SUCCEEDED"] * 3
    for before, after in pairwise(done):
        assert before["finished_at"] <= after["started_at"]
    history = server.get(f"/documents/{document['id']}")["runs"]
    assert [run["number"] for run in history] == list(range(51, 0, -1))
    assert {run["state"] for run in history if run["number"] > 4} == {"CANCELLED"}


@pytest.mark.contract("P8", "S4")
def test_runs_can_be_started_only_through_the_application(server: RecordsServer) -> None:
    document = server.upload(note("only from code"))
    run = server.ended(document["runs"][0]["id"])
    args = {"document_id": document["id"], "sha256": document["sha256"]}
    for path, body in (
        ("/holdfast/api/runs", {"job": "records.process", "args": args}),
        (f"/holdfast/api/runs/{run['id']}/again", None),
        ("/holdfast/api/runs/again", {"job": "records.process"}),
    ):
        refused = server.http.post(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "only_from_code")
        assert refused.json()["start_at"] == "/documents"
        assert server.http.get("/documents").status_code == 200
    page = server.http.get(f"/holdfast/runs/{run['id']}", headers={"Accept": "text/html"}).text
    assert ('href="/documents"' in page, "again-dialog" in page) == (True, False)
    bulk = server.http.post("/holdfast/api/runs/again", json={"queue": "records"}).json()
    done = wait_for(
        lambda: (found := server.get(f"/holdfast/api/runs/{bulk['id']}"))["state"] == "succeeded" and found,
        "the bulk run has succeeded",
    )
    assert done["result"]["done"] == 0
    assert [one["id"] for one in server.get(f"/documents/{document['id']}")["runs"]] == [run["id"]]


@pytest.mark.contract("P8")
def test_processing_again_makes_a_new_run_and_leaves_the_old_one_unchanged(server: RecordsServer) -> None:
    document = server.upload(note("again"))
    first = server.ended(document["runs"][0]["id"])
    second = server.process_again(document["id"])
    assert second["id"] != first["id"]
    assert server.ended(second["id"])["state"] == "SUCCEEDED"
    server.cancel(first["id"])
    assert {**server.run(first["id"]), "events": None} == {**first, "events": None}
    with contextlib.closing(sqlite3.connect(server.database)) as other:
        for statement in ("update holdfast_outcomes set state = 'failed' where run_id = ?",
                          "delete from holdfast_outcomes where run_id = ?"):  # fmt: skip
            with pytest.raises(sqlite3.DatabaseError, match=r"never|ended|outcome"):
                other.execute(statement, (first["id"],))
            other.rollback()


@pytest.mark.contract("P6")
def test_a_failed_step_is_attempted_once_more_within_its_run(server: RecordsServer) -> None:
    blob = server.blob({"sha256": hashlib.sha256(note("retry")).hexdigest()})
    blob.mkdir(parents=True)  # a folder in place of the file: reading it fails
    document = server.upload(note("retry"))
    run = server.ended(document["runs"][0]["id"])
    assert (run["state"], run["failure_type"], run["attempts"]) == ("FAILED", "FILE_UNAVAILABLE", 1)
    assert run["steps"][0]["attempts"] == 2
    assert [event["kind"] for event in run["events"]].count("STEP_RETRIED") == 1

    back = server.process_again(document["id"])
    wait_for(
        lambda: "STEP_RETRIED" in [one["kind"] for one in server.run(back["id"])["events"]],
        "the step is attempted again",
    )
    blob.rmdir()
    blob.write_bytes(note("retry"))
    run = server.ended(back["id"])
    assert (run["state"], run["steps"][0]["attempts"]) == ("SUCCEEDED", 2)
    assert len(server.get(f"/documents/{document['id']}")["runs"]) == 2  # the second attempt did not make another run


def test_a_stored_file_that_was_changed_is_not_read(server: RecordsServer) -> None:
    blob = server.blob({"sha256": hashlib.sha256(note("changed")).hexdigest()})
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(b"something else")
    document = server.upload(note("changed"))
    assert server.ended(document["runs"][0]["id"])["failure_type"] == "FILE_CHANGED"


def test_a_crashed_process_fails_only_its_own_run(server: RecordsServer) -> None:
    with server.stuck(note("crash")) as document:
        [run] = document["runs"]
        server.running(run["id"])
        waiting = wait_for(lambda: blocked_process(server.blob(document)), "the run's process has opened the file")
        os.kill(waiting, signal.SIGSEGV)
        ended = server.ended(run["id"])
    assert (ended["state"], ended["failure_type"]) == ("FAILED", "PROCESS_TERMINATED")
    assert "SIGSEGV" in ended["error"]
    assert server.ended(server.upload(note("after the crash"))["runs"][0]["id"])["state"] == "SUCCEEDED"


def blocked_process(path: Path) -> int | None:
    """Return the pid of the run's process that is blocked in `open` on this pipe, which has no writer."""
    for wchan in Path("/proc").glob("[0-9]*/wchan"):
        with contextlib.suppress(OSError):
            pid = int(wchan.parent.name)
            if "wait_for_partner" not in wchan.read_text():
                continue
            if f"APP_FOLDER={path.parents[2]}\0".encode() in (wchan.parent / "environ").read_bytes():
                return pid
    return None


@pytest.mark.contract("P3")
def test_a_queued_run_and_a_running_run_can_be_cancelled(server: RecordsServer) -> None:
    with server.stuck(note("cancel")) as document:
        running, queued = document["runs"][0], server.process_again(document["id"])
        server.running(running["id"])
        server.cancel(queued["id"])
        assert server.run(queued["id"])["state"] == "CANCELLED"
        assert [step["state"] for step in server.run(queued["id"])["steps"]] == ["NOT_REACHED"] * 4
        server.cancel(running["id"])
        assert server.ended(running["id"])["state"] == "CANCELLED"


@pytest.mark.contract("P10")
def test_a_locked_database_loses_no_run_and_fails_no_request(server: RecordsServer) -> None:
    before = len(contentions(server))
    with (
        contextlib.closing(sqlite3.connect(server.database, isolation_level=None)) as other,
        ThreadPoolExecutor() as pool,
    ):
        with server.stuck(note("locked")) as document:
            blocking, waiting = document["runs"][0], server.process_again(document["id"])
            server.running(blocking["id"])
            working = wait_for(lambda: blocked_process(server.blob(document)), "the run's process has opened the file")
            other.execute("begin immediate")
            posted = pool.submit(server.process_again, document["id"])
            logged = server.log.read_text()
            os.kill(working, signal.SIGKILL)  # the worker now tries to write the outcome
            wait_for(lambda: "worker: " in server.log.read_text().removeprefix(logged), "the lock is logged at once")
            assert server.get(f"/documents/{document['id']}")["state"] == "QUEUED"  # reads are answered
            assert server.run(blocking["id"])["state"] == "RUNNING"  # nothing could be written
        other.execute("rollback")
        assert posted.result()["state"] == "QUEUED"
    runs = [server.ended(run["id"]) for run in (blocking, waiting, posted.result())]
    assert [run["state"] for run in runs] == ["FAILED", "SUCCEEDED", "SUCCEEDED"]
    wait_for(lambda: len(contentions(server)) > before, "the contention is recorded")


def contentions(server: RecordsServer) -> list[Any]:
    with contextlib.closing(sqlite3.connect(server.database)) as other:
        return list(other.execute("select data from holdfast_events where kind = 'DATABASE_BUSY'"))


@pytest.mark.contract("P1")
def test_requests_are_answered_while_twenty_large_documents_are_processed(server: RecordsServer) -> None:
    small = server.upload(note("small"))
    server.ended(small["runs"][0]["id"])
    words = "Herr Anton Berger zahlte am 3. Mai 2024 den Betrag von 1.250,00 EUR an Frau Clara Weiss. "

    large = [server.upload(f"{number} {words * 1000}".encode()) for number in range(20)]
    first = large[0]["runs"][0]["id"]
    # Count requests instead of seconds: on a busy machine, requests and runs slow down together.
    answered = 0
    while server.run(first)["state"] in UNFINISHED:
        server.get(f"/documents/{small['id']}")
        answered += 1
    states = [server.get(f"/documents/{one['id']}")["state"] for one in large]
    assert states.count("QUEUED") >= 10
    print(f"{answered} requests were answered while one document was processed")
    assert answered >= 20
    for one in large[1:]:
        server.cancel(one["runs"][0]["id"])
    assert server.run(first)["state"] == "SUCCEEDED"


def test_the_openapi_document_has_every_route(server: RecordsServer) -> None:
    paths = server.get("/openapi.json")["paths"]
    assert {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods} == {
        "POST /documents",
        "GET /documents",
        "GET /documents/{document_id}",
        "GET /documents/{document_id}/file",
        "POST /documents/{document_id}/runs",
        "GET /runs/{run_id}",
        "GET /runs/{run_id}/events",
        "GET /runs/{run_id}/pages",
        "POST /runs/{run_id}/cancel",
    }
    assert TOKEN not in server.log.read_text()
