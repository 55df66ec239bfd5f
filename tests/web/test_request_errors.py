"""An invalid request is answered with a problem and its code, and changes nothing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from tests.contract.helpers.nested_values import nested
from tests.databases import sqlite
from tests.sample_app import sample_app
from tests.web.conftest import ROLES, Server, serving

from holdfast import Holdfast
from holdfast.support.json_text import MAX_DEPTH
from holdfast.testing import Manual
from holdfast.values.tokens import Role


class World:
    """A server with sample data.

    clients   a client by role; None has no token
    names     placeholders in paths, and the ids that replace them
    """

    def __init__(self, hf: Holdfast, server: Server) -> None:
        self.hf = hf
        self.clients = {role: server.client(role) for role in (None, *ROLES)}
        manual = Manual(hf)
        manual.schedule()
        done, film = hf.submit("letters.greet", name="Ada"), hf.submit("film", text="one two")
        manual.run_all()
        hf.queues.limit("q", max_queued=3)
        hf.tokens.add("ada")
        hf.jobs["letters.greet"].using(idempotency_key="one").submit(name="Bob")
        self.names = {"RUN": done.id, "FILM": film.id}

    def ask(self, refusal: Refusal) -> httpx.Response:
        method, path = refusal.asked.split(" ", 1)
        for name, run_id in self.names.items():
            path = path.replace(name, run_id)
        headers: dict[str, Any] = {"Content-Type": "application/json", **(refusal.headers or {})}
        # httpx can't encode a lone surrogate; `json.dumps` writes it as an escape.
        body = None if refusal.body is None else json.dumps(refusal.body)
        return self.clients[refusal.role].request(method, path, content=body, headers=headers)

    def rows(self) -> list[str]:
        with contextlib.closing(sqlite.connect(self.hf.settings.url.removeprefix("sqlite:///"))) as connection:
            return list(connection.iterdump())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with sample_app(tmp_path_factory.mktemp("refusals")) as hf, serving(hf) as server:
        yield World(hf, server)


class Refusal(NamedTuple):
    asked: str
    status: int
    code: str
    body: Any = None
    role: Role | None = "admin"
    headers: dict[str, Any] | None = None


def submission(status: int, code: str, **given: Any) -> Refusal:
    return Refusal("POST /api/runs", status, code, {"job": "letters.greet", "args": {"name": "Ada"}} | given)


def value(status: int, code: str, given: Any) -> Refusal:
    return submission(status, code, job="letters.echo", args={"value": given})


CHANGES: list[tuple[str, Any]] = [
    ("runs", {"job": "letters.greet", "args": {"name": "x"}}),
    ("runs/cancel", {"tag": "no=one"}),
    ("runs/again", {"tag": "no=one"}),
    ("runs/RUN/cancel", {}),
    ("runs/RUN/again", None),
    ("queues/q/pause", {}),
    ("queues/q/resume", None),
    ("schedules/letters.daily/pause", {}),
    ("schedules/letters.daily/resume", None),
    ("schedules/letters.daily/trigger", {"scheduled_for": "2026-11-01T00:00:00Z"}),
    ("builds/RUN/invalidate", {}),
    ("builds/RUN/rebuild", None),
    ("pipelines/FILM/rerun", {"from_stage": "render"}),
    ("workers/w/drain", None),
]
TABLE = [
    # Submissions.
    submission(404, "unknown_job", job="letters.nothing"),
    submission(422, "invalid_arguments", args={}),
    submission(422, "invalid_arguments", args={"name": "Ada", "self": 1}),
    submission(422, "invalid_request", prioritty=1),
    submission(422, "invalid_request", priority="1"),
    submission(422, "invalid_request", queue="a\0b"),
    submission(422, "invalid_request", due_at="2026-11-16T06:00:00"),
    submission(422, "invalid_request", due_at=0),
    submission(422, "unknown_dependency", depends_on=["nothing"]),
    submission(422, "invalid_request", **{"job": "\ud800", "\udfff": 1}),
    submission(422, "invalid_policy", job="holdfast.cancel_matching", args={"filter": {}, "reason": ""}),
    value(422, "not_serialisable", "\ud800"),
    value(422, "not_serialisable", ["\ud800"]),
    value(422, "not_serialisable", "a\x00b"),
    value(422, "not_serialisable", {"a\x00b": 1}),
    value(422, "not_serialisable", nested(MAX_DEPTH)),
    value(413, "too_large", "x" * 1_000_001),
    Refusal("POST /api/runs", 422, "invalid_request", []),
    *(
        submission(422, "invalid_request")._replace(headers={"Idempotency-Key": key.encode()})
        for key in ("é", "a\x7f", "x" * 201)
    ),
    submission(409, "idempotency_conflict")._replace(headers={"Idempotency-Key": "one"}),
    # Queries.
    *(
        Refusal(f"GET /api/runs?{query}", 422, code)
        for query, code in (
            ("stat=failed", "invalid_request"),
            ("state=done", "invalid_request"),
            ("limit=0", "invalid_request"),
            ("limit=201", "invalid_request"),
            ("after=made-up", "invalid_arguments"),
            ("tag=nothing", "invalid_request"),
            ("since=yesterday", "invalid_request"),
            ("since=0001-01-01T00:00:00%2B14:00", "invalid_request"),
            ("state=queued&state=failed", "invalid_request"),
            ("job=a%00b", "invalid_request"),
            ("arg=a..b=1", "invalid_arguments"),
            ("order=oldest", "invalid_request"),
        )
    ),
    Refusal("GET /api/runs/RUN/events?after=made-up", 422, "invalid_arguments"),
    Refusal("GET /api/runs/RUN/artifacts?after=nothing", 422, "invalid_arguments"),
    # Unknown names.
    Refusal("GET /api/jobs/letters.gret", 404, "unknown_job"),
    Refusal("GET /api/runs/nothing", 404, "run_not_found"),
    Refusal("GET /api/runs/nothing/events", 404, "run_not_found"),
    Refusal("GET /api/runs/nothing/logs", 404, "run_not_found"),
    Refusal("GET /api/runs/RUN/steps/nothing", 404, "step_not_found"),
    Refusal("GET /api/runs/RUN/artifacts/nothing", 404, "artifact_not_found"),
    Refusal("POST /api/schedules/nothing/pause", 404, "schedule_not_found", {}),
    Refusal("POST /api/workers/nothing/drain", 404, "worker_not_found"),
    Refusal("GET /api/builds/RUN", 404, "build_not_found"),
    Refusal("GET /api/pipelines/RUN", 404, "pipeline_not_found"),
    Refusal("POST /api/pipelines/FILM/rerun", 422, "invalid_arguments", {"from_stage": "nowhere"}),
    Refusal("DELETE /api/tokens/nobody", 404, "token_not_found"),
    Refusal("POST /api/tokens", 409, "token_exists", {"name": "ada"}),
    Refusal("GET /api/nothing", 404, "unknown_path"),
    Refusal("GET /api/runs/x/y/z/nothing", 404, "unknown_path"),
    Refusal("DELETE /api/runs", 405, "wrong_method"),
    # Missing permissions.
    *(Refusal(f"POST /api/{path}", 401, "not_signed_in", body, role=None) for path, body in CHANGES),
    *(Refusal(f"POST /api/{path}", 403, "not_allowed", body, role="viewer") for path, body in CHANGES),
    Refusal("POST /api/queues/q/limit", 403, "not_allowed", {"max_queued": 1}, role="operator"),
    Refusal("GET /api/tokens", 403, "not_allowed", role="operator"),
]


def _named(refusal: Refusal) -> str:
    return f"{refusal.asked} {ascii(refusal.body)[:60]} {refusal.role} {ascii(refusal.headers)[:40]}"


@pytest.mark.contract("S4")
@pytest.mark.parametrize("refusal", TABLE, ids=map(_named, TABLE))
def test_an_invalid_request_is_a_problem_with_its_code_and_changes_nothing(world: World, refusal: Refusal) -> None:
    before = world.rows()
    answer = world.ask(refusal)
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert (answer.status_code, body["status"], body["code"]) == (refusal.status, refusal.status, refusal.code), body
    assert body["title"]
    assert body["detail"]
    assert world.rows() == before
