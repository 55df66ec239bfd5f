"""Generated requests to every operation: no internal error, and every response is documented."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.sample_app import sample_app
from tests.web.conftest import TOKEN, Server, serving

from holdfast import Holdfast

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
KNOWN: dict[str, list[str]] = {}
"""Existing names by parameter: about half of the generated names are replaced by one of them."""

DOCUMENT = json.loads((Path(__file__).parent.parent.parent / "docs" / "openapi.json").read_text("utf-8"))
del DOCUMENT["security"]  # every request here has a valid token; other tests cover invalid tokens


def described(*, coverage: bool) -> schemathesis.BaseSchema:
    """The operations; with `coverage` each is also tried with the boundary values of its parameters."""
    api = schemathesis.openapi.from_dict(DOCUMENT)
    api.config.phases.coverage.enabled = coverage
    for hook in (map_path_parameters, map_query, map_body):
        api.hook(hook)
    return api


def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    path = context.operation.path
    return path_parameters and {name: _known(path, name, value) for name, value in path_parameters.items()}


def map_query(context: Any, query: dict[str, Any] | None) -> dict[str, Any] | None:
    """Shorten long polls."""
    if query and isinstance(query.get("wait"), int | float) and 0 <= query["wait"] <= 30:
        return query | {"wait": 0.01}
    return query


def map_body(context: Any, body: Any) -> Any:
    """Make some of the submissions valid."""
    if context.operation.path != "/api/runs" or not isinstance(body, dict) or not isinstance(body.get("job"), str):
        return body
    valid = {} if len(body["job"]) % 2 else {"args": {"name": "Ada"}}
    return body | {"job": "letters.greet"} | valid


def _known(path: str, name: str, value: Any) -> Any:
    there = KNOWN.get(f"{path.split('/')[2]} {name}") or KNOWN.get(name)
    return there[len(value) % len(there)] if there and isinstance(value, str) and len(value) % 2 else value


@pytest.fixture(scope="module", autouse=True)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with sample_app(tmp_path_factory.mktemp("fuzz")) as hf:
        _fill(hf)
        with serving(hf) as found:
            yield found
        assert hf.verify() == []


def _fill(hf: Holdfast) -> None:
    with hf.worker(queues=["default"]):
        done = hf.submit("letters.greet", name="Ada")
        built = hf.submit("environments.install", package="a", fingerprint="f")
        shot = hf.submit("film", text="one two")
        for run in (done, built, shot):
            run.result(20)
    waiting = hf.submit("letters.greet", name="Bob")
    KNOWN.update(
        {
            "run_id": [done.id, waiting.id, built.id, shot.id],
            "builds run_id": [built.id],
            "pipelines run_id": [shot.id],
            "stage": ["script", "audio", "render"],
            "jobs name": ["letters.greet"],
            "schedules name": ["letters.daily"],
            "queues name": ["default", "mail"],
            "runs name": ["letter.txt", "write"],
        }
    )


everyday, thorough = described(coverage=False), described(coverage=True)
FIXED_EXAMPLES: dict[str, Any] = {
    "derandomize": True,
    "database": None,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
}


@everyday.parametrize()
@settings(max_examples=5, **FIXED_EXAMPLES)
def test_no_generated_request_causes_an_internal_error(server: Server, case: schemathesis.Case[Any]) -> None:
    answer(server, case)


@pytest.mark.long
@pytest.mark.timeout(300)
@thorough.parametrize()
@settings(max_examples=60, **FIXED_EXAMPLES)
def test_no_request_with_boundary_values_causes_an_internal_error(server: Server, case: schemathesis.Case[Any]) -> None:
    answer(server, case)


def answer(server: Server, case: schemathesis.Case[Any]) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    response = case.call(base_url=server.url, headers=headers, timeout=20)
    case.validate_response(response, checks=CHECKS, headers=headers)
