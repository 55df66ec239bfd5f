"""Every route with every role: fails for a route that is not in TABLE or admits a lower role."""

from __future__ import annotations

import re

import pytest
from fastapi.routing import iter_route_contexts
from tests.web.conftest import ROLES, Server

from holdfast.values.tokens import Role

# The lowest role that each route admits; higher roles are admitted too.
TABLE = {
    "open": """
        GET /healthz
        GET /readyz
        GET /sign-in
        POST /sign-in
        GET /static/{version}/{path:path}
    """,
    "viewer": """
        GET /metrics
        GET /api/jobs
        GET /api/jobs/{name:path}
        GET /api/runs
        GET /api/runs/count
        GET /api/runs/counts
        GET /api/runs/ids
        GET /api/runs/open
        GET /api/runs/{run_id}
        GET /api/runs/{run_id}/why
        GET /api/runs/{run_id}/events
        GET /api/events
        GET /api/runs/{run_id}/logs
        GET /api/runs/{run_id}/steps
        GET /api/runs/{run_id}/steps/{name:path}
        GET /api/runs/{run_id}/artifacts
        GET /api/runs/{run_id}/artifacts/{name}
        GET /api/builds
        GET /api/builds/{run_id}
        GET /api/keys
        GET /api/pipelines
        GET /api/pipelines/{run_id}
        GET /api/pipelines/{run_id}/stages/{stage}/segments
        GET /api/schedules
        GET /api/schedules/{name:path}/slots
        GET /api/schedules/{name:path}
        GET /api/queues
        GET /api/queues/{name:path}
        GET /api/workers
        GET /api/workers/{worker_id:path}
        GET /api/statistics/overview
        GET /api/statistics/gauges
        GET /api/statistics/series
        GET /api/statistics/failures
        GET /api/statistics/jobs
        GET /api/statistics/counters
        GET /api/audit
        GET /api/openapi.json
        POST /sign-out
        GET /live
        GET /
        GET /overview/series
        GET /runs
        GET /runs/tabs
        GET /runs/{run_id}
        GET /runs/{run_id}/log
        GET /runs/{run_id}/artifacts/{name}
        GET /pipelines
        GET /pipelines/{run_id}
        GET /schedules
        GET /schedules/{name:path}
        GET /builds
        GET /builds/{run_id}
        GET /keys
        GET /queues
        GET /workers
    """,
    "operator": """
        POST /api/runs
        POST /api/runs/cancel
        POST /api/runs/again
        POST /api/runs/{run_id}/cancel
        POST /api/runs/{run_id}/again
        POST /api/builds/{run_id}/invalidate
        POST /api/builds/{run_id}/rebuild
        POST /api/pipelines/{run_id}/rerun
        POST /api/schedules/{name:path}/trigger
        POST /api/schedules/{name:path}/pause
        POST /api/schedules/{name:path}/resume
        POST /api/queues/{name:path}/pause
        POST /api/queues/{name:path}/resume
        POST /api/workers/{worker_id:path}/drain
        GET /runs/matching
        POST /runs/matching
        POST /runs/{run_id}/cancel
        POST /runs/{run_id}/again
        POST /pipelines/{run_id}/cancel
        POST /pipelines/{run_id}/rerun
        POST /schedules/trigger
        POST /schedules/pause
        POST /schedules/resume
        POST /builds/{run_id}/invalidate
        POST /builds/{run_id}/rebuild
        POST /queues/pause
        POST /queues/resume
        POST /workers/drain
    """,
    "admin": """
        POST /api/queues/{name:path}/limit
        GET /api/tokens
        POST /api/tokens
        DELETE /api/tokens/{name:path}
        POST /queues/limit
    """,
}
NEEDED = {
    tuple(line.split()): None if role == "open" else role
    for role, lines in TABLE.items()
    for line in lines.strip().splitlines()
}
SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")


def test_every_route_is_in_the_table(shared: Server) -> None:
    routes = {
        (method, route.path)
        for route in iter_route_contexts(shared.app.router.routes)
        for method in route.methods or ()
        if route.path != "/api/{path:path}"  # the catch-all for unknown paths
    }
    assert routes == set(NEEDED), "add the route to TABLE with its role"


@pytest.mark.parametrize("role", [None, *ROLES])
def test_no_route_admits_a_role_that_is_not_in_the_table(shared: Server, role: Role | None) -> None:
    client = shared.client(role)
    wrong = []
    for (method, path), needed in NEEDED.items():
        where = re.sub(r"{\w+(:path)?}", "x", path)
        if (method, where) == ("POST", "/sign-out") and role is not None:
            continue  # it would end the session for the next routes
        with client.stream(method, where, json={} if method not in SAFE else None) as answer:
            status = answer.status_code
            if needed is None:
                expected = status not in (403,)
            elif role is None:
                expected = status == 401
            elif ROLES.index(role) < ROLES.index(needed):
                expected = status == 403
            else:
                expected = status not in (401, 403) and status < 500
            if not expected:
                wrong.append((method, where, status))
    assert wrong == []


def test_no_change_is_made_in_a_session_without_its_csrf_token(shared: Server) -> None:
    client = shared.client("admin", cookie=True)
    del client.headers["X-CSRF-Token"]
    for method, path in NEEDED:
        where = re.sub(r"{\w+(:path)?}", "x", path)
        if method not in SAFE and where != "/sign-in":
            answer = client.request(method, where, json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "csrf_missing"), (method, where)
