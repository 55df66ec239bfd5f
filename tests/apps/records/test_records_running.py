"""The archive as a process: what is promised of its runs, asked from outside."""

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
from tests.apps.records.serving import OPEN, SAMPLES, Served
from tests.apps.records.test_records_reading import PNG
from tests.apps.serving import TOKEN
from tests.process.support import wait_for

LETTER = b"Dear Ms Webb,\n\nthank you for your letter of 3 May 2024.\n\nYours sincerely,\n\nPaul Grant\n"


def note(name: str) -> bytes:
    """A document of this test's own."""
    return LETTER + name.encode()


@pytest.mark.contract("P1", "P11")
def test_a_document_is_taken_at_once_and_processed_in_four_steps(served: Served) -> None:
    document = served.hand_in((SAMPLES / "invoice.pdf").read_bytes(), "invoice.pdf")
    assert (document["kind"], document["name"]) == ("pdf", "invoice.pdf")
    [first] = document["runs"]
    assert first["state"] in OPEN  # the answer did not wait for the work

    run = served.ended(first["id"])
    assert (run["state"], run["attempts"], run["failure_type"]) == ("SUCCEEDED", 1, None)
    steps = [(step["name"], step["state"], step["attempts"]) for step in run["steps"]]
    assert steps == [(name, "FINISHED", 1) for name in ("EXTRACT", "CLASSIFY", "INTERPRET", "VALIDATE")]
    kinds = [event["kind"] for event in run["events"] if event["kind"] not in ("PROGRESS", "LOG")]
    assert kinds == ["RUN_QUEUED", "RUN_STARTED", *["STEP_STARTED", "STEP_FINISHED"] * 4, "RUN_SUCCEEDED"]
    times = [event["happened_at"] for event in run["events"]]
    assert times == sorted(times)

    found = served.get(f"/documents/{document['id']}")
    assert (found["state"], found["document_class"]) == ("SUCCEEDED", "invoice")
    values = {field["name"]: (field["value"], field["unit"]) for field in found["fields"]}
    assert values["total"] == ("6247.50", "EUR")
    assert values["due_date"] == ("2026-09-28", None)
    pages = served.get(f"/runs/{first['id']}/pages")
    assert all(pages[one["page"] - 1][one["start"] : one["end"]] == one["text"] for one in found["fields"])
    assert served.http.get(f"/documents/{document['id']}/file").content == (SAMPLES / "invoice.pdf").read_bytes()


@pytest.mark.contract("P11")
def test_the_events_of_a_run_are_told_as_they_happen(served: Served) -> None:
    document = served.hand_in(note("events"))
    told = []
    with served.http.stream("GET", document_events(document), headers={"Accept": "text/event-stream"}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line == "event: end":
                break
            if line.startswith("data: "):
                told.append(json.loads(line.removeprefix("data: "))["kind"])
    assert told[0] == "RUN_QUEUED"
    assert told[-1] == "RUN_SUCCEEDED"
    assert told.count("STEP_FINISHED") == 4


def document_events(document: dict[str, Any]) -> str:
    return f"/runs/{document['runs'][0]['id']}/events"


@pytest.mark.contract("S4")
def test_what_is_no_document_is_refused_with_a_code_and_changes_nothing(served: Served) -> None:
    before = served.get("/documents")["documents"][:1]
    files = sorted(served.folder.glob("blobs/*/*"))

    def refused(**sent: Any) -> tuple[int, str]:
        answer = served.http.post("/documents", **sent)
        return answer.status_code, answer.json()["code"]

    assert refused(files={"file": ("report.pdf", PNG)}) == (415, "unsupported_type")
    assert refused(files={"file": ("Report.PDF", b"<html>Your session is over.</html>")}) == (
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

    assert served.get("/documents")["documents"][:1] == before
    assert sorted(served.folder.glob("blobs/*/*")) == files


@pytest.mark.contract("S4")
def test_what_is_not_there_and_who_may_not_is_told(served: Served) -> None:
    for path in ("/documents/nothing", "/documents/nothing/file"):
        answer = served.http.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "document_not_found")
    again = served.http.post("/documents/nothing/runs")
    assert (again.status_code, again.json()["code"]) == (404, "document_not_found")
    for path in ("/runs/nothing", "/runs/nothing/events", "/runs/nothing/pages"):
        answer = served.http.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "run_not_found")
    assert served.http.get("/documents?before=x").status_code == 422

    stranger = httpx.Client(base_url=served.address, trust_env=False)
    with stranger:
        for path in ("/documents", "/runs/x", "/", "/holdfast/api/runs", "/openapi.json"):
            assert stranger.get(path).status_code == 401
        assert stranger.post("/documents", files={"file": ("a.txt", b"a")}).status_code == 401
        made = served.http.post("/holdfast/api/passes", json={"name": "reader", "role": "viewer"})
        stranger.headers["Authorization"] = f"Bearer {made.json()['token']}"
        assert stranger.get("/documents").status_code == 200
        assert stranger.post("/documents", files={"file": ("a.txt", b"a")}).status_code == 403


def test_a_name_is_only_shown_and_a_path_never_comes_from_it(served: Served) -> None:
    document = served.hand_in(note("name"), "../../etc/passwd\u202e<script>.txt")
    assert document["name"] == "passwd<script>.txt"
    assert served.blob(document).is_file()
    download = served.http.get(f"/documents/{document['id']}/file")
    assert download.headers["content-disposition"] == "attachment; filename*=UTF-8''passwd%3Cscript%3E.txt"
    assert download.headers["x-content-type-options"] == "nosniff"


BAD = {
    "locked.pdf": ((SAMPLES / "locked.pdf").read_bytes(), "ENCRYPTED"),
    "scan.pdf": ((SAMPLES / "scan.pdf").read_bytes(), "IMAGE_ONLY"),
    "cut-off.pdf": ((SAMPLES / "cut-off.pdf").read_bytes(), "TRUNCATED"),
    "empty.txt": (b"", "EMPTY"),
}


def test_what_can_not_be_read_fails_with_its_reason_and_others_go_on(served: Served) -> None:
    documents = {name: served.hand_in(content, name) for name, (content, _) in BAD.items()}
    good = served.hand_in(note("among the bad"))
    for name, (_, why) in BAD.items():
        run = served.ended(documents[name]["runs"][0]["id"])
        assert (name, run["state"], run["failure_type"]) == (name, "FAILED", why)
        assert run["error"]
        assert "Traceback" not in run["error"]
        assert [step["state"] for step in run["steps"]] == ["FAILED", *["NOT_REACHED"] * 3]
        assert [step["started_at"] for step in run["steps"]] == [run["started_at"], None, None, None]
        assert "STEP_RETRIED" not in [event["kind"] for event in run["events"]]  # it would come to the same
    assert served.ended(good["runs"][0]["id"])["state"] == "SUCCEEDED"


@pytest.mark.contract("P2", "P3", "P4", "P9")
def test_of_fifty_who_ask_at_once_one_runs_and_the_others_follow_in_order(served: Served) -> None:
    with served.stuck(note("fifty")) as document:
        [blocking] = document["runs"]
        served.running(blocking["id"])
        with ThreadPoolExecutor(25) as pool:
            asked = list(pool.map(lambda _: served.again(document["id"]), range(50)))
        assert sorted(run["number"] for run in asked) == list(range(2, 52))
        states = [run["state"] for run in served.get(f"/documents/{document['id']}")["runs"]]
        assert sorted(states) == ["QUEUED"] * 50 + ["RUNNING"]

        # Past our code, from another process: the database refuses a second one.
        with contextlib.closing(sqlite3.connect(served.database)) as other:
            with pytest.raises(sqlite3.IntegrityError, match=r"(?i)unique"):
                other.execute(
                    "insert into holdfast_leases (run_id, job, queue, rank, run_key, attempt, tries, takeovers, "
                    "holder, started_at, expires_at) select ?, job, queue, rank, run_key, 1, 1, 0, 'by hand', "
                    "started_at, expires_at from holdfast_leases where run_id = ?",
                    (asked[0]["id"], blocking["id"]),
                )
            other.rollback()

        in_order = sorted(asked, key=lambda run: run["number"])
        for run in in_order[3:]:
            served.cancel(run["id"])  # a start takes a while: a few show the order as well as fifty
    served.cancel(blocking["id"])
    assert served.ended(blocking["id"])["state"] == "CANCELLED"
    done = [served.ended(run["id"]) for run in in_order[:3]]
    assert [run["state"] for run in done] == ["SUCCEEDED"] * 3
    for before, after in pairwise(done):
        assert before["finished_at"] <= after["started_at"]
    history = served.get(f"/documents/{document['id']}")["runs"]
    assert [run["number"] for run in history] == list(range(51, 0, -1))
    assert {run["state"] for run in history if run["number"] > 4} == {"CANCELLED"}


@pytest.mark.contract("P8", "S4")
def test_the_engine_starts_no_run_that_the_archive_knows_nothing_of(served: Served) -> None:
    document = served.hand_in(note("past the archive"))
    run = served.ended(document["runs"][0]["id"])
    args = {"document_id": document["id"], "sha256": document["sha256"]}
    for path, body in (
        ("/holdfast/api/runs", {"job": "records.process", "args": args}),
        (f"/holdfast/api/runs/{run['id']}/again", None),
        ("/holdfast/api/runs/again", {"job": "records.process"}),
    ):
        refused = served.http.post(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "only_from_code")
        assert refused.json()["start_at"] == "/documents"
        assert served.http.get("/documents").status_code == 200
    page = served.http.get(f"/holdfast/runs/{run['id']}", headers={"Accept": "text/html"}).text
    assert ('href="/documents"' in page, "again-dialog" in page) == (True, False)
    bulk = served.http.post("/holdfast/api/runs/again", json={"queue": "records"}).json()
    done = wait_for(
        lambda: (found := served.get(f"/holdfast/api/runs/{bulk['id']}"))["state"] == "succeeded" and found, "bulk"
    )
    assert done["result"]["done"] == 0
    assert [one["id"] for one in served.get(f"/documents/{document['id']}")["runs"]] == [run["id"]]


@pytest.mark.contract("P8")
def test_an_ended_run_stays_as_it_is_and_processing_again_is_a_new_one(served: Served) -> None:
    document = served.hand_in(note("again"))
    first = served.ended(document["runs"][0]["id"])
    second = served.again(document["id"])
    assert second["id"] != first["id"]
    assert served.ended(second["id"])["state"] == "SUCCEEDED"
    served.cancel(first["id"])
    assert {**served.run(first["id"]), "events": None} == {**first, "events": None}
    with contextlib.closing(sqlite3.connect(served.database)) as other:
        for statement in ("update holdfast_outcomes set state = 'failed' where run_id = ?",
                          "delete from holdfast_outcomes where run_id = ?"):  # fmt: skip
            with pytest.raises(sqlite3.DatabaseError, match=r"never|ended|outcome"):
                other.execute(statement, (first["id"],))
            other.rollback()


@pytest.mark.contract("P6")
def test_a_step_that_fails_is_tried_once_more_inside_its_run(served: Served) -> None:
    blob = served.blob({"sha256": hashlib.sha256(note("retry")).hexdigest()})
    blob.mkdir(parents=True)  # which no one can read
    document = served.hand_in(note("retry"))
    run = served.ended(document["runs"][0]["id"])
    assert (run["state"], run["failure_type"], run["attempts"]) == ("FAILED", "FILE_UNAVAILABLE", 1)
    assert run["steps"][0]["attempts"] == 2
    assert [event["kind"] for event in run["events"]].count("STEP_RETRIED") == 1

    back = served.again(document["id"])
    wait_for(lambda: "STEP_RETRIED" in [one["kind"] for one in served.run(back["id"])["events"]], "it is tried again")
    blob.rmdir()
    blob.write_bytes(note("retry"))
    run = served.ended(back["id"])
    assert (run["state"], run["steps"][0]["attempts"]) == ("SUCCEEDED", 2)
    assert len(served.get(f"/documents/{document['id']}")["runs"]) == 2  # no run was made for it


def test_a_file_that_was_changed_is_not_read_as_if_it_were_the_one_handed_in(served: Served) -> None:
    blob = served.blob({"sha256": hashlib.sha256(note("changed")).hexdigest()})
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(b"something else")
    document = served.hand_in(note("changed"))
    assert served.ended(document["runs"][0]["id"])["failure_type"] == "FILE_CHANGED"


def test_a_run_whose_process_crashes_fails_alone(served: Served) -> None:
    with served.stuck(note("crash")) as document:
        [run] = document["runs"]
        served.running(run["id"])
        waiting = wait_for(lambda: who_waits_for(served.blob(document)), "its process has opened the file")
        os.kill(waiting, signal.SIGSEGV)
        ended = served.ended(run["id"])
    assert (ended["state"], ended["failure_type"]) == ("FAILED", "PROCESS_TERMINATED")
    assert "SIGSEGV" in ended["error"]
    assert served.ended(served.hand_in(note("after the crash"))["runs"][0]["id"])["state"] == "SUCCEEDED"


def who_waits_for(path: Path) -> int | None:
    """The run's process that is stuck at this file: it sleeps in `open` for a writer that never comes."""
    for place in Path("/proc").glob("[0-9]*/wchan"):
        with contextlib.suppress(OSError):
            pid = int(place.parent.name)
            if "wait_for_partner" not in place.read_text():
                continue
            if f"APP_FOLDER={path.parents[2]}\0".encode() in (place.parent / "environ").read_bytes():
                return pid
    return None


@pytest.mark.contract("P3")
def test_a_run_is_cancelled_before_it_starts_or_in_the_middle(served: Served) -> None:
    with served.stuck(note("cancel")) as document:
        running, queued = document["runs"][0], served.again(document["id"])
        served.running(running["id"])
        served.cancel(queued["id"])
        assert served.run(queued["id"])["state"] == "CANCELLED"
        assert [step["state"] for step in served.run(queued["id"])["steps"]] == ["NOT_REACHED"] * 4
        served.cancel(running["id"])
        assert served.ended(running["id"])["state"] == "CANCELLED"


@pytest.mark.contract("P10")
def test_a_database_that_is_locked_loses_nothing_and_fails_no_request(served: Served) -> None:
    before = len(contentions(served))
    with (
        contextlib.closing(sqlite3.connect(served.database, isolation_level=None)) as other,
        ThreadPoolExecutor() as pool,
    ):
        with served.stuck(note("locked")) as document:
            blocking, waiting = document["runs"][0], served.again(document["id"])
            served.running(blocking["id"])
            working = wait_for(lambda: who_waits_for(served.blob(document)), "its process has opened the file")
            other.execute("begin immediate")
            posted = pool.submit(served.again, document["id"])
            logged = served.log.read_text()
            os.kill(working, signal.SIGKILL)  # its place is free: now the next one must be started
            wait_for(lambda: "worker: " in served.log.read_text().removeprefix(logged), "it is logged at once")
            assert served.get(f"/documents/{document['id']}")["state"] == "QUEUED"  # whoever only looks is answered
            assert served.run(blocking["id"])["state"] == "RUNNING"  # nothing could be written
        other.execute("rollback")
        assert posted.result()["state"] == "QUEUED"
    runs = [served.ended(run["id"]) for run in (blocking, waiting, posted.result())]
    assert [run["state"] for run in runs] == ["FAILED", "SUCCEEDED", "SUCCEEDED"]
    wait_for(lambda: len(contentions(served)) > before, "it is recorded")


def contentions(served: Served) -> list[Any]:
    with contextlib.closing(sqlite3.connect(served.database)) as other:
        return list(other.execute("select data from holdfast_events where kind = 'SCHEDULER_CONTENTION'"))


@pytest.mark.contract("P1")
def test_whoever_asks_is_answered_while_twenty_heavy_documents_are_processed(served: Served) -> None:
    light = served.hand_in(note("light"))
    served.ended(light["runs"][0]["id"])
    words = "Herr Anton Berger zahlte am 3. Mai 2024 den Betrag von 1.250,00 EUR an Frau Clara Weiss. "

    heavy = [served.hand_in(f"{number} {words * 1000}".encode()) for number in range(20)]
    first = heavy[0]["runs"][0]["id"]
    # Both slow down together on a machine that has other work: what counts is how much is answered meanwhile.
    answered = 0
    while served.run(first)["state"] in OPEN:
        served.get(f"/documents/{light['id']}")
        answered += 1
    states = [served.get(f"/documents/{one['id']}")["state"] for one in heavy]
    assert states.count("QUEUED") >= 10
    print(f"{answered} requests were answered while one document was processed")
    assert answered >= 20
    for one in heavy[1:]:
        served.cancel(one["runs"][0]["id"])
    assert served.run(first)["state"] == "SUCCEEDED"


def test_the_api_describes_itself(served: Served) -> None:
    paths = served.get("/openapi.json")["paths"]
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
    assert TOKEN not in served.log.read_text()
