"""The endpoints of the API: requests and responses."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.requests import ClientDisconnect
from tests.sample_app import sample_app
from tests.web.conftest import Server

from holdfast import Context, Holdfast
from holdfast.web.api.artifacts import Download, Range

CONTENT = bytes(range(256)) * 8


@pytest.fixture(scope="module")
def hf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holdfast]:
    with sample_app(tmp_path_factory.mktemp("endpoints")) as hf:

        @hf.job(name="files.keep")
        def keep(ctx: Context) -> None:
            ctx.artifact("data.bin", CONTENT)
            ctx.artifact("page.html", b"<script>alert(1)</script>")
            ctx.artifact("note.txt", b"Ada")

        yield hf


@pytest.fixture(scope="module")
def admin(server: Server) -> httpx.Client:
    return server.client("admin")


@pytest.fixture(scope="module")
def done(hf: Holdfast) -> str:
    """A succeeded run, whose key no other run waits for."""
    run = hf.jobs["letters.greet"].using(key=lambda **_: "done").submit(name="Ada")
    with hf.worker(queues=["default"]):
        run.result(20)
    return run.id


@pytest.fixture(scope="module")
def files(hf: Holdfast) -> str:
    """A run with artifacts."""
    run = hf.submit("files.keep")
    with hf.worker(queues=["default"]):
        run.result(20)
    return run.id


def problem(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["title"]
    assert body["detail"]
    return answer.status_code, body["code"]


def test_a_job_shows_its_argument_schema(admin: httpx.Client) -> None:
    job = admin.get("/api/jobs/letters.greet").json()
    assert job["doc"] == "Greets someone. Lists show only the first sentence."
    assert job["arguments"]["properties"]["times"] == {"title": "Times", "type": "integer"}
    assert job["arguments"]["required"] == ["name"]
    assert job["policy"]["max_attempts"] == 1
    assert "letters.greet" in [each["name"] for each in admin.get("/api/jobs").json()["items"]]


def test_a_run_is_submitted_once_for_its_idempotency_key(admin: httpx.Client) -> None:
    asked = {"job": "letters.greet", "args": {"name": "Bob"}, "tags": {"a": "b"}, "key": "k", "delay": 3600}
    first = admin.post("/api/runs", json=asked, headers={"Idempotency-Key": "one"})
    second = admin.post("/api/runs", json=asked, headers={"Idempotency-Key": "one"})
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert first.headers["location"] == f"/api/runs/{first.json()['id']}"
    assert admin.get(first.headers["location"]).json()["key"] == "k"


def test_a_full_queue_answers_with_retry_after(admin: httpx.Client) -> None:
    asked = {"job": "letters.greet", "args": {"name": "Ada"}, "queue": "small"}
    assert admin.post("/api/runs", json=asked).status_code == 201
    full = admin.post("/api/runs", json=asked)
    assert problem(full) == (429, "queue_full")
    assert int(full.headers["retry-after"]) == full.json()["retry_after"] >= 1
    assert (full.json()["queue"], full.json()["limit"]) == ("small", 1)


def test_a_list_is_read_page_by_page_with_cursors(hf: Holdfast, admin: httpx.Client) -> None:
    ids = [hf.jobs["letters.greet"].using(tags={"page": "yes"}).submit(name="Ada").id for _ in range(5)]
    found: list[str] = []
    after: str | None = None
    query: dict[str, Any] = {"tag": "page=yes", "limit": 2}
    for _ in range(4):
        page = admin.get("/api/runs", params=query | ({"after": after} if after else {})).json()
        found += [run["id"] for run in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert found == ids[::-1]
    assert admin.get("/api/runs/count", params={"tag": "page=yes"}).json() == {"number": 5, "more": False}
    assert admin.get("/api/runs/counts", params={"tag": "page=yes"}).json()["queued"]["number"] == 5
    by_argument = admin.get("/api/runs", params={"tag": "page=yes", "arg": "name=Ada"}).json()
    assert len(by_argument["items"]) == 5


def test_lists_leave_out_long_values(hf: Holdfast, admin: httpx.Client) -> None:
    run = hf.jobs["letters.echo"].using(tags={"long": "yes"}).submit(value="x" * 20_000)
    [listed] = admin.get("/api/runs", params={"tag": "long=yes"}).json()["items"]
    assert (listed["args"], listed["cut"]) == (None, ["args"])
    whole = admin.get(f"/api/runs/{run.id}").json()
    assert (len(whole["args"]["value"]), whole["cut"]) == (20_000, [])


def test_events_are_read_page_by_page_without_gap_or_repeat(done: str, hf: Holdfast, admin: httpx.Client) -> None:
    told: list[str] = []
    after: str | None = None
    for _ in range(50):
        query = {"limit": 1} | ({"after": after} if after else {})
        page = admin.get(f"/api/runs/{done}/events", params=query).json()
        told += [event["kind"] for event in page["events"]]
        after = page["next"]
        if page["ended"]:
            break
    assert told == [event.kind for event in hf.timeline(done)]
    assert page["state"] == "succeeded"
    again = admin.get(f"/api/runs/{done}/events", params={"after": after}).json()
    assert again["events"] == []


def test_a_long_poll_ends_with_the_next_event(hf: Holdfast, admin: httpx.Client) -> None:
    run = hf.submit("letters.greet", name="Poll")
    first = admin.get(f"/api/runs/{run.id}/events").json()
    quiet = admin.get(f"/api/runs/{run.id}/events", params={"after": first["next"], "wait": 0.05}).json()
    assert (quiet["events"], quiet["ended"], quiet["next"]) == ([], False, first["next"])
    answers: list[dict[str, Any]] = []
    path = f"/api/runs/{run.id}/events"
    waiting = threading.Thread(
        target=lambda: answers.append(admin.get(path, params={"after": first["next"], "wait": 15}).json())
    )
    waiting.start()
    run.cancel()
    waiting.join(60)
    assert [event["kind"] for event in answers[0]["events"]] == ["RUN_CANCELLED"]
    assert answers[0]["ended"]


def test_a_stream_sends_the_same_events_and_resumes(done: str, hf: Holdfast, admin: httpx.Client) -> None:
    path, accept = f"/api/runs/{done}/events", {"Accept": "text/event-stream"}
    whole = admin.get(path, headers=accept)
    assert whole.headers["content-type"].startswith("text/event-stream")
    told = [json.loads(line[6:]) for line in whole.text.splitlines() if line.startswith('data: {"')]
    assert [event["kind"] for event in told] == [event.kind for event in hf.timeline(done)]
    rest = admin.get(path, headers=accept | {"Last-Event-ID": told[2]["cursor"]})
    assert [json.loads(line[6:]) for line in rest.text.splitlines() if line.startswith('data: {"')] == told[3:]
    assert admin.get(path, headers=accept | {"Last-Event-ID": told[-1]["cursor"]}).status_code == 204


def test_operator_actions_are_in_the_event_stream_of_all_runs(hf: Holdfast, server: Server) -> None:
    operator = server.client("operator")
    start = operator.get("/api/events", params={"limit": 200}).json()["next"]
    run = hf.submit("letters.greet", name="Op")
    operator.post(f"/api/runs/{run.id}/cancel", json={"reason": "wrong"})
    [event] = operator.get("/api/events", params={"after": start, "kinds": "OPERATOR_ACTION", "wait": 5}).json()[
        "events"
    ]
    assert event["data"] == {"by": "operator", "action": "cancel", "details": {"reason": "wrong", "state": "cancelled"}}
    done = operator.get("/api/audit", params={"limit": 1}).json()
    assert done["items"][0]["by"] == "operator"
    assert done["next"] == done["items"][0]["cursor"]


def test_logs_are_found_by_level_and_text(done: str, admin: httpx.Client) -> None:
    def messages(**query: Any) -> list[str]:
        return [record["message"] for record in admin.get(f"/api/runs/{done}/logs", params=query).json()["records"]]

    assert messages() == ["to Ada", "printer offline"]
    assert messages(level="WARNING") == ["printer offline"]
    assert messages(text="ADA") == ["to Ada"]
    page = admin.get(f"/api/runs/{done}/logs", params={"limit": 1}).json()
    assert messages(after=page["next"]) == ["printer offline"]


def test_steps_are_shown_with_their_results(done: str, admin: httpx.Client) -> None:
    [step] = admin.get(f"/api/runs/{done}/steps").json()["items"]
    assert (step["name"], step["result"], step["cut"]) == ("write", "hello Ada", False)
    assert admin.get(f"/api/runs/{done}/steps/write").json() == step


@pytest.mark.parametrize(
    ("asked", "status", "first", "size"),
    [
        (None, 200, 0, 2048),
        ("bytes=0-9", 206, 0, 10),
        ("bytes=2000-", 206, 2000, 48),
        ("bytes=-5", 206, 2043, 5),
        ("bytes=2040-9999", 206, 2040, 8),
        ("bytes=0-1,5-6", 200, 0, 2048),
        ("bytes=9-1", 200, 0, 2048),
        ("lines=1-2", 200, 0, 2048),
    ],
)
def test_an_artifact_is_downloaded_whole_or_by_range(
    asked: str | None, status: int, first: int, size: int, files: str, admin: httpx.Client
) -> None:
    answer = admin.get(f"/api/runs/{files}/artifacts/data.bin", headers={"Range": asked} if asked else {})
    assert (answer.status_code, answer.content) == (status, CONTENT[first : first + size])
    if status == 206:
        assert answer.headers["content-range"] == f"bytes {first}-{first + size - 1}/2048"


def test_a_file_is_closed_when_the_client_disconnects() -> None:
    async def gone(message: Any = None) -> Any:
        raise OSError("the client is gone")

    file = io.BytesIO(CONTENT)
    scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
    with pytest.raises(ClientDisconnect):
        asyncio.run(Download(file, Range(0, 9), 206, {})(scope, gone, gone))
    assert file.closed


def test_artifacts_are_listed_in_pages(files: str, admin: httpx.Client) -> None:
    path, names, after = f"/api/runs/{files}/artifacts", [], None
    for _ in range(4):
        body = admin.get(path, params={"limit": 1} | ({"after": after} if after else {})).json()
        names += [one["name"] for one in body["items"]]
        after = body["next"]
        if after is None:
            break
    assert names == ["data.bin", "note.txt", "page.html"]


def test_an_artifact_has_its_checksum_as_etag(files: str, admin: httpx.Client) -> None:
    path = f"/api/runs/{files}/artifacts/data.bin"
    tag = f'"{hashlib.sha256(CONTENT).hexdigest()}"'
    assert admin.get(path).headers["etag"] == tag
    assert admin.get(path, headers={"If-None-Match": tag}).status_code == 304
    assert admin.get(path, headers={"Range": "bytes=0-1", "If-Range": tag}).status_code == 206
    assert admin.get(path, headers={"Range": "bytes=0-1", "If-Range": '"old"'}).status_code == 200
    beyond = admin.get(path, headers={"Range": "bytes=5000-"})
    assert problem(beyond) == (416, "range_not_satisfiable")
    assert beyond.headers["content-range"] == "bytes */2048"


@pytest.mark.parametrize(
    ("name", "kind", "shown"),
    [
        ("page.html", "application/octet-stream", "attachment"),
        ("data.bin", "application/octet-stream", "attachment"),
        ("note.txt", "text/plain; charset=utf-8", "inline"),
    ],
)
def test_an_artifact_cannot_run_scripts_in_a_browser(
    name: str, kind: str, shown: str, files: str, admin: httpx.Client
) -> None:
    headers = admin.get(f"/api/runs/{files}/artifacts/{name}").headers
    assert headers["content-type"] == kind
    assert headers["content-disposition"] == f'{shown}; filename="{name}"'
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"


def test_all_matching_runs_are_cancelled_by_a_background_run(hf: Holdfast, admin: httpx.Client) -> None:
    job = hf.jobs["letters.greet"].using(tags={"bulk": "yes"}, queue="held")
    ids = [job.submit(name="Ada").id for _ in range(3)]
    answer = admin.post("/api/runs/cancel", json={"tag": "bulk=yes", "state": "queued", "reason": "too many"})
    assert answer.status_code == 202
    assert answer.json()["state"] == "queued"
    with hf.worker(queues=["default"]):
        hf.get(answer.json()["id"]).result(20)
    assert admin.get(f"/api/runs/{answer.json()['id']}").json()["result"] == {"matched": 3, "done": 3, "skipped": 0}
    assert {hf.snapshot(run_id).state for run_id in ids} == {"cancelled"}
    again = admin.post("/api/runs/again", json={"tag": "bulk=yes", "state": "cancelled"})
    assert again.status_code == 202


def test_a_slot_is_triggered_once(admin: httpx.Client, hf: Holdfast) -> None:
    path, slot = "/api/schedules/letters.daily", {"scheduled_for": "2026-11-15T00:00:00Z"}
    assert problem(admin.post(f"{path}/trigger", json=slot)) == (409, "no_worker")
    with hf.worker(queues=["default"]):
        made = admin.post(f"{path}/trigger", json=slot)
    assert (made.status_code, made.json()["job"]) == (201, "letters.daily")
    taken = admin.post(f"{path}/trigger", json=slot)
    assert problem(taken) == (409, "slot_taken")
    assert taken.json()["run_id"] == made.json()["id"]
    assert admin.post(f"{path}/pause", json={"note": "rest"}).json()["note"] == "rest"
    assert admin.post(f"{path}/resume").json()["paused_at"] is None


def test_operators_control_runs_and_admins_manage_limits_and_tokens(server: Server) -> None:
    operator, admin = server.client("operator"), server.client("admin")
    assert operator.post("/api/queues/q/pause", json={}).status_code == 200
    assert operator.post("/api/queues/q/resume").json()["paused_at"] is None
    assert admin.post("/api/queues/q/limit", json={"max_queued": 1}).json()["max_queued"] == 1
    assert admin.post("/api/queues/q/limit", json={"concurrency": 2}).json()["max_queued"] == 1
    assert admin.post("/api/queues/q/limit", json={"max_queued": None}).json()["max_queued"] is None
    given = admin.post("/api/tokens", json={"name": "eve", "role": "viewer"}).json()
    eve = httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {given['token']}"})
    with eve:
        assert eve.get("/api/jobs").status_code == 200
    assert given["token"] not in admin.get("/api/tokens").text
    assert admin.delete("/api/tokens/eve").status_code == 204


def test_a_wrong_method_lists_the_allowed_ones_and_invalid_json_is_a_problem(admin: httpx.Client) -> None:
    wrong = admin.delete("/api/runs")
    assert wrong.headers["allow"] == "GET, POST"
    assert problem(admin.post("/api/runs", content=b"{", headers={"Content-Type": "application/json"}))[0] == 422


def test_an_internal_error_shows_only_its_reference(
    admin: httpx.Client, hf: Holdfast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("the password is swordfish")

    monkeypatch.setattr(hf.queues, "list", fail)
    answer = admin.get("/api/queues")
    assert problem(answer) == (500, "internal_error")
    assert "swordfish" not in answer.text
    [record] = [record for record in caplog.records if record.name == "holdfast.web"]
    assert answer.json()["incident"] in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
