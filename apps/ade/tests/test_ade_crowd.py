"""Many submissions at once: two servers on one database, more runs than the queue allows, and one build."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from apps.ade.tests.ade_service import (
    AUTHORISED,
    LONG,
    EngineWatch,
    Service,
    files,
    held_rules,
    release,
    stores,
)
from tests.process.support import wait_for

QUEUE_SIZE, SUBMISSIONS, AT_ONCE = 1000, 1050, 40
SQLITE_DIVISOR = 5
"""SQLite allows one writer at a time, so the test submits a fifth as many runs there."""
pytestmark = pytest.mark.timeout(300)


async def submit_all(services: list[Service], configuration: str, document: str, count: int) -> list[httpx.Response]:
    """Submit `count` runs concurrently, alternating between the services."""
    semaphore = asyncio.Semaphore(AT_ONCE)
    # Don't reuse connections: the server may close an idle one just as a request is sent on it.
    limits = httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=0)

    async def submit(client: httpx.AsyncClient) -> httpx.Response:
        async with semaphore:
            body = {"input_document_id": document}
            return await client.post(f"/configurations/{configuration}/runs", json=body)

    clients = [
        httpx.AsyncClient(base_url=each.url, headers=AUTHORISED, timeout=LONG, limits=limits) for each in services
    ]
    try:
        return await asyncio.gather(*(submit(clients[number % len(clients)]) for number in range(count)))
    finally:
        for client in clients:
            await client.aclose()


def every_run(one: Service) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = []
    before = None
    while True:
        page = one.get("/runs", limit=200, **({"before": before} if before else {}))
        runs += page["runs"]
        before = page["next"]
        if before is None:
            return runs


@pytest.mark.parametrize("own_url", stores(long="sqlite"), indirect=True)
@pytest.mark.contract("Q4", "Q5", "Q8", "Q9", "Q12", "Q18")
def test_a_thousand_submissions_make_one_build_and_never_exceed_the_concurrency(own_url: str, tmp_path: Path) -> None:
    divisor = SQLITE_DIVISOR if own_url.startswith("sqlite") else 1
    queue_size, submissions = QUEUE_SIZE // divisor, SUBMISSIONS // divisor
    settings = {
        "ade_max_concurrency": 1,
        "ade_queue_size": queue_size,
        "holdfast_poll_interval": 1,
        "holdfast_max_requests_per_second": 100_000,
    }
    with (
        Service(own_url, tmp_path / "one", **settings) as one,
        Service(own_url, tmp_path / "two", **settings) as two,
    ):
        workspace = one.workspace(f"crowd {secrets.token_hex(4)}")
        document = one.document(workspace)
        configuration = one.configuration(workspace, "held", files("held", held_rules()))

        answers = asyncio.run(submit_all([one, two], configuration, document, submissions))

        assert Counter(answer.status_code for answer in answers) == {201: queue_size, 429: submissions - queue_size}
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert refused.json()["code"] == "run_queue_full"
        assert int(refused.headers["Retry-After"]) >= 1
        runs = every_run(two)
        assert len({run["id"] for run in runs}) == len(runs) == queue_size
        assert {run["id"] for run in runs} == {answer.json()["id"] for answer in answers if answer.status_code == 201}
        assert {run["status"] for run in runs} == {"queued"}
        [build] = one.get("/builds")["builds"]
        assert {run["build_id"] for run in runs} == {build["id"]}

        other = one.configuration(workspace, "late", files("late"))
        refused = one.post(f"/configurations/{other}/runs", status=429, json={"input_document_id": document})
        assert refused["code"] == "run_queue_full"
        assert one.get("/builds", configuration_id=other)["builds"] == []
        one.post(f"/runs/{runs[-1]['id']}/cancel", status=200)
        assert two.submit(other, document)["status"] == "queued"

        with EngineWatch(tmp_path / "one", tmp_path / "two") as watch:
            wait_for(lambda: both_have_run(one, watch), at_most=200, what="both services have executed runs")
            running = one.get("/runs", status="running")["runs"]
        assert len(running) <= 2
        assert set(watch.most.values()) == {1}
        build_runs = one.get("/holdfast/api/runs", job="ade.environment")["items"]
        [build_run] = [run for run in build_runs if run["args"]["configuration_id"] == configuration]
        assert build_run["attempt"] == 1


def both_have_run(one: Service, watch: EngineWatch) -> bool:
    """Return whether both services have run engines, so that one restored the other's build; fail if a run failed."""
    release(*watch.seen)
    assert one.get("/runs", status="failed")["runs"] == []
    return all(watch.seen.values()) and sum(map(len, watch.seen.values())) >= 3
