"""Runs over HTTP on each database: from upload to workbook, and every other way in which a run can end."""

from __future__ import annotations

import io
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from apps.ade.tests.ade_service import (
    AUTHORISED,
    MANY_ROWS,
    RULES,
    SLOW,
    EngineWatch,
    Service,
    engines,
    files,
    held_rules,
)
from openpyxl import load_workbook
from tests.process.support import wait_for

BROKEN = RULES + "\nraise RuntimeError('these rules are broken')\n"


@pytest.fixture(scope="module")
def workspace(ade: Service) -> str:
    return ade.workspace(f"tests {secrets.token_hex(4)}")


@pytest.fixture(scope="module")
def document(ade: Service, workspace: str) -> str:
    return ade.document(workspace)


@pytest.fixture(scope="module")
def plain(ade: Service, workspace: str) -> str:
    return ade.configuration(workspace, "plain", files())


@pytest.fixture(scope="module")
def slow(ade: Service, workspace: str) -> str:
    return ade.configuration(workspace, "slow", files("slow", RULES + SLOW))


@pytest.fixture(scope="module")
def finished(ade: Service, plain: str, document: str) -> dict[str, Any]:
    return ade.ended(ade.submit(plain, document)["id"])


@pytest.mark.contract("Q1", "Q2", "Q17", "Q20")
def test_a_messy_file_becomes_a_normalised_workbook(
    ade: Service, workspace: str, plain: str, document: str, finished: dict[str, Any]
) -> None:
    assert (finished["status"], finished["message"]) == ("succeeded", None)
    assert finished["workspace_id"] == workspace
    assert finished["configuration_id"] == plain
    assert finished["input_document_id"] == document
    assert finished["build_id"] == finished["build"]["id"]
    assert finished["created_at"] < finished["started_at"] < finished["finished_at"]
    assert finished["summary"] == finished["summary"] | {"rows_read": 2, "rows_written": 2, "rows_rejected": 0}

    outputs = {output["name"]: output for output in ade.get(finished["outputs_url"])["outputs"]}
    assert sorted(outputs) == ["output.xlsx", "preview.json", "report.json"]
    workbook = load_workbook(io.BytesIO(ade.http.get(outputs["output.xlsx"]["url"]).content))
    rows = [[cell.value for cell in row][:2] for row in workbook["Data"].iter_rows()]
    assert [[str(value) for value in row] for row in rows] == [["Name", "Amount"], ["Ada", "1.5"], ["Bob", "2"]]

    sheets = {sheet["name"]: sheet for sheet in ade.get(f"/runs/{finished['id']}/preview")["sheets"]}
    assert [row[:2] for row in sheets["Data"]["rows"]] == [["Name", "Amount"], ["Ada", "1.5"], ["Bob", "2"]]
    assert any("column A 'Customer' is mapped to name" in line for line in ade.log_of(finished["id"]))


@pytest.mark.contract("Q7", "Q16", "S4")
def test_runs_can_not_be_submitted_through_the_engine_s_own_api(ade: Service, finished: dict[str, Any]) -> None:
    args = {
        "document_id": finished["input_document_id"],
        "configuration_id": finished["configuration_id"],
        "version": 1,
    }
    for path, body in (
        ("/holdfast/api/runs", {"job": "ade.run", "args": args}),
        (f"/holdfast/api/runs/{finished['id']}/again", None),
        ("/holdfast/api/runs/again", {"job": "ade.run"}),
    ):
        refused = ade.http.post(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "only_from_code")
        assert refused.json()["start_at"] == "/runs"
        assert ade.http.get("/runs").status_code == 200


@pytest.mark.contract("Q17")
def test_the_event_stream_of_a_run_has_its_log_and_ends(ade: Service, finished: dict[str, Any]) -> None:
    with ade.http.stream("GET", finished["events_url"], headers={"Accept": "text/event-stream"}) as stream:
        text = "".join(stream.iter_text())
    assert "is mapped to name, score" in text
    assert text.rstrip().endswith("event: end\ndata: {}")


@pytest.mark.contract("Q16")
def test_run_again_makes_a_new_run_and_leaves_the_earlier_one_as_it_was(ade: Service, finished: dict[str, Any]) -> None:
    again = ade.post(f"/runs/{finished['id']}/again")
    assert again["id"] != finished["id"]
    assert again["build_id"] == finished["build_id"]
    assert ade.ended(again["id"])["status"] == "succeeded"
    assert ade.get(f"/runs/{finished['id']}") == finished
    assert not {"attempt", "claim", "retry_of_run_id", "again_of"} & set(again)


@pytest.mark.contract("Q9")
def test_one_process_never_exceeds_its_concurrency(ade: Service, workspace: str, slow: str) -> None:
    document = ade.document(workspace, b"Name,Amount\nAda,1\n")
    with EngineWatch(ade.folder) as watch:
        runs = [ade.submit(slow, document) for _ in range(3)]
        assert [ade.ended(run["id"])["status"] for run in runs] == ["succeeded"] * 3
    assert watch.most == {ade.folder: 2}


@pytest.mark.contract("Q7")
def test_a_document_of_another_workspace_is_refused_and_no_run_is_created(ade: Service, plain: str) -> None:
    other = ade.document(ade.workspace(f"other {secrets.token_hex(4)}"))
    before = [run["id"] for run in ade.get("/runs")["runs"]]
    for document in (other, "0123"):
        problem = ade.post(f"/configurations/{plain}/runs", status=404, json={"input_document_id": document})
        assert problem["code"] == "document_not_found"
    assert ade.post("/configurations/0123/runs", status=404, json={"input_document_id": other})["code"] == (
        "configuration_not_found"
    )
    assert ade.post(f"/configurations/{plain}/runs", status=422, json={})["code"] == "invalid_request"
    assert [run["id"] for run in ade.get("/runs")["runs"]] == before


@pytest.mark.contract("Q7")
def test_a_submission_returns_the_queued_run_and_its_build_at_once(ade: Service, workspace: str, document: str) -> None:
    held = ade.configuration(workspace, "submitted", files("submitted", held_rules()))
    first, second = ade.submit(held, document), ade.submit(held, document)
    assert {run["status"] for run in (first, second)} == {"queued"}
    assert first["build"]["fingerprint"] == ade.get(f"/configurations/{held}")["fingerprint"]
    assert first["build_id"] == second["build_id"]
    newest = ade.get("/runs", configuration_id=held)["runs"]
    assert [run["id"] for run in newest] == [second["id"], first["id"]]
    ade.post(f"/builds/{first['build_id']}/cancel", status=200)
    assert {ade.ended(run["id"])["status"] for run in (first, second)} == {"failed"}


@pytest.mark.contract("Q3", "Q6")
def test_changed_files_get_a_new_build_and_the_same_files_share_one(
    ade: Service, workspace: str, document: str
) -> None:
    configuration = ade.configuration(workspace, "changing", files("changing"))
    first = ade.submit(configuration, document)

    def save(saved: dict[str, str]) -> dict[str, Any]:
        response = ade.http.put(f"/configurations/{configuration}", json={"files": saved})
        assert response.status_code == 200
        version: dict[str, Any] = response.json()
        return version

    assert save(files("changing"))["version"] == 1
    assert save(files("changing", RULES + "# changed\n"))["version"] == 2
    second = ade.submit(configuration, document)
    ade.post(f"/runs/{first['id']}/cancel", status=200)
    assert second["build_id"] != first["build_id"]
    assert second["build"]["fingerprint"] != first["build"]["fingerprint"]
    assert save(files("changing"))["version"] == 3
    third = ade.ended(ade.submit(configuration, document)["id"])
    assert third["build_id"] == first["build_id"]
    assert (third["status"], ade.ended(second["id"])["status"]) == ("succeeded", "succeeded")
    assert len(ade.get("/builds", configuration_id=configuration)["builds"]) == 2


@pytest.mark.contract("Q11")
def test_a_failed_build_fails_its_runs_and_the_next_run_builds_it_again(
    ade: Service, workspace: str, document: str
) -> None:
    configuration = ade.configuration(workspace, "broken", files("broken", BROKEN))
    runs = [ade.submit(configuration, document) for _ in range(3)]
    ended = [ade.ended(run["id"]) for run in runs]
    assert {run["status"] for run in ended} == {"failed"}
    assert all(run["message"].startswith("build failed: ") for run in ended)
    assert all("these rules are broken" in run["message"] for run in ended)
    assert all(run["started_at"] is None for run in ended)
    build = ade.get(f"/builds/{runs[0]['build_id']}")
    assert build["status"] == "failed"
    assert "these rules are broken" in build["message"]

    again = ade.submit(configuration, document)
    assert again["build_id"] == build["id"]
    assert ade.ended(again["id"])["status"] == "failed"
    assert ade.get(f"/builds/{build['id']}")["started_at"] > build["started_at"]
    assert [ade.get(f"/runs/{run['id']}") for run in runs] == [
        run | {"build": ade.get(f"/builds/{build['id']}")} for run in ended
    ]


@pytest.mark.contract("Q2", "Q10", "Q15")
def test_cancelled_runs_stop_and_a_run_that_waits_for_its_build_blocks_no_other(
    ade: Service, workspace: str, slow: str, plain: str, finished: dict[str, Any], document: str
) -> None:
    """Cancels a queued run, the build that another run waits for, and a running run."""
    long = ade.document(workspace, MANY_ROWS, "many.csv")
    held = ade.configuration(workspace, "held", files("held", held_rules()))
    waiting = ade.submit(held, document)
    ade.reached(f"/builds/{waiting['build_id']}", "building")
    younger = ade.submit(plain, document)
    assert ade.ended(younger["id"])["status"] == "succeeded"
    run = ade.get(f"/runs/{waiting['id']}")
    assert (run["status"], run["build"]["status"]) == ("queued", "building")

    never = ade.submit(held, document)
    assert ade.post(f"/runs/{never['id']}/cancel", status=200)["status"] == "cancelled"
    stopped = ade.post(f"/builds/{waiting['build_id']}/cancel", status=200)
    ade.reached(f"/builds/{stopped['id']}", "cancelled")
    ended = ade.ended(waiting["id"])
    assert (ended["status"], ended["started_at"]) == ("failed", None)
    assert ended["message"].startswith("build failed: ")
    assert ade.get(f"/runs/{never['id']}")["started_at"] is None
    wait_for(lambda: not (ade.folder / "checks").exists() or not list((ade.folder / "checks").glob("*/rules.py")))

    running = ade.submit(slow, long)
    ade.reached(f"/runs/{running['id']}", "running")
    pids = wait_for(lambda: engines(ade.folder), at_most=60, what="the engine runs")
    [pid] = pids
    group = os.getpgid(pid)
    ade.post(f"/runs/{running['id']}/cancel", status=200)
    ended = ade.ended(running["id"])
    assert (ended["status"], ended["message"]) == ("cancelled", ended["message"])
    assert ended["message"].startswith("cancelled by admin")
    assert not members(group)
    assert engines(ade.folder) == {}
    assert list((ade.folder / "work").glob("*/inside")) == []
    assert ade.post(f"/runs/{running['id']}/cancel", status=200)["status"] == "cancelled"


def members(group: int) -> list[int]:
    """Return the processes of a process group."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, pgrp = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if int(pgrp) == group and state not in "ZX":
                pids.append(int(entry.name))
    return pids


def test_other_files_are_refused_and_a_damaged_spreadsheet_fails_with_a_message(
    ade: Service, workspace: str, plain: str
) -> None:
    for content in (b"\x89PNG\r\n\x1a\n" + bytes(100), b"\xd0\xcf\x11\xe0" + bytes(600), b"", bytes(50)):
        answer = ade.http.post(f"/workspaces/{workspace}/documents", files={"file": ("a.csv", content)})
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_type")
    damaged = ade.document(workspace, b"PK\x03\x04" + bytes(range(256)) * 10, "damaged.xlsx")
    ended = ade.ended(ade.submit(plain, damaged)["id"])
    assert ended["status"] == "failed"
    assert ended["message"].endswith(")")
    assert "Traceback" not in ended["message"]


def test_concurrent_uploads_of_the_same_bytes_share_their_content(ade: Service, workspace: str) -> None:
    content = b"Name,Amount\n" + b"".join(f"N{number},{number}\n".encode() for number in range(200_000))
    with ThreadPoolExecutor(6) as senders:
        sent = list(senders.map(lambda _: ade.document(workspace, content), range(6)))
    documents = [ade.get(f"/documents/{document}") for document in sent]
    assert (len(set(sent)), len({each["sha256"] for each in documents})) == (6, 1)
    assert ade.http.get(documents[0]["content_url"]).content == content


HOSTILE = """
import json

@rules.transform("name")
def forge_events(value, row):
    for event in (
        {"event": "progress", "share": 0.5, "rows_read": "many"},
        {"event": "log", "text": "\\0 \\ud800"},
        {"event": "run.finished", "tables": "two", "rows_read": [1], "rows_written": {}, "seconds": "x"},
    ):
        for descriptor in range(3, 30):
            try:
                os.write(descriptor, (json.dumps(event) + "\\n").encode())
            except OSError:
                pass
    os._exit(0)
"""


@pytest.mark.contract("Q17")
def test_rules_that_forge_engine_events_fail_only_their_own_run(ade: Service, workspace: str, document: str) -> None:
    hostile = ade.configuration(workspace, "hostile", files("hostile", RULES + HOSTILE))
    ended = ade.ended(ade.submit(hostile, document)["id"])
    assert (ended["status"], ended["summary"]) == ("failed", None)
    assert "wrote no workbook" in ended["message"]
    assert "printed: \\0" in "".join(ade.log_of(ended["id"]))
    assert ade.get("/runs")["runs"][0]["id"] == ended["id"]


def test_invalid_requests_get_a_4xx_answer(ade: Service, plain: str, finished: dict[str, Any]) -> None:
    for path, status in {
        f"/configurations/{plain}?version=99999999999999999999": 422,
        f"/configurations/{plain}?version=77": 404,
        f"/runs/{finished['id']}/log?after=nothing": 422,
        f"/runs/{finished['id']}/outputs/%00": 422,
        "/runs/nothing/events": 404,
        "/runs?before=%00": 422,
    }.items():
        assert ade.http.get(path).status_code == status, path
    build_run = ade.get("/holdfast/api/runs", job="ade.environment")["items"][0]["id"]
    assert ade.http.get(f"/runs/{build_run}/events").status_code == 404


@pytest.mark.parametrize("path", ["/runs", "/documents", "/configurations", "/builds", "/workspaces", "/openapi.json"])
def test_every_route_needs_a_token(ade: Service, path: str) -> None:
    assert httpx.get(ade.url.rstrip("/") + path).status_code == 401
    assert httpx.get(ade.url.rstrip("/") + path, headers=AUTHORISED).status_code == 200


def test_a_browser_gets_a_page_at_every_address(ade: Service, plain: str, finished: dict[str, Any]) -> None:
    pages = ["/runs", "/runs?status=failed", "/documents", "/configurations", "/builds", finished["url"]]
    for path in [*pages, f"/configurations/{plain}", finished["build"]["url"]]:
        answer = ade.http.get(path, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8"), path
