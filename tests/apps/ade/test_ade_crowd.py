"""Many at once: two API processes on one database, more submissions than the queue takes, one build, N engines each."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.apps.ade.ade_service import (
    AUTHORISED,
    LONG,
    Service,
    Watch,
    files,
    held_rules,
    release,
    stores,
)
from tests.process.support import wait_for

PLACES, ASKED, AT_ONCE = 1000, 1050, 40
FEWER = 5
"""On SQLite each of them writes alone: the same path with a fifth of the numbers."""
pytestmark = pytest.mark.timeout(300)


async def submit_all(services: list[Service], configuration: str, document: str, asked: int) -> list[httpx.Response]:
    """Everyone asks at once, half of them here and half of them there."""
    waiting = asyncio.Semaphore(AT_ONCE)
    # No connection is used twice: a server may close one that rests at the very moment in which it is.
    limits = httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=0)

    async def submit(client: httpx.AsyncClient) -> httpx.Response:
        async with waiting:
            body = {"input_document_id": document}
            return await client.post(f"/configurations/{configuration}/runs", json=body)

    clients = [
        httpx.AsyncClient(base_url=each.url, headers=AUTHORISED, timeout=LONG, limits=limits) for each in services
    ]
    try:
        return await asyncio.gather(*(submit(clients[number % len(clients)]) for number in range(asked)))
    finally:
        for client in clients:
            await client.aclose()


def every_run(one: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    before = None
    while True:
        page = one.get("/runs", limit=200, **({"before": before} if before else {}))
        found += page["runs"]
        before = page["next"]
        if before is None:
            return found


@pytest.mark.parametrize("own_url", stores(long="sqlite"), indirect=True)
@pytest.mark.contract("Q4", "Q5", "Q8", "Q9", "Q12", "Q18")
def test_a_thousand_runs_one_build_one_execution_and_never_more_engines_than_places(
    own_url: str, tmp_path: Path
) -> None:
    places, asked = (number // (FEWER if own_url.startswith("sqlite") else 1) for number in (PLACES, ASKED))
    settings = {
        "ade_max_concurrency": 1,
        "ade_queue_size": places,
        "holdfast_tick": 1,
        "holdfast_max_requests": 100_000,
    }
    with (
        Service(own_url, tmp_path / "one", **settings) as one,
        Service(own_url, tmp_path / "two", **settings) as two,
    ):
        workspace = one.workspace(f"crowd {secrets.token_hex(4)}")
        document = one.document(workspace)
        configuration = one.configuration(workspace, "held", files("held", held_rules()))

        answers = asyncio.run(submit_all([one, two], configuration, document, asked))

        assert Counter(answer.status_code for answer in answers) == {201: places, 429: asked - places}
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert refused.json()["code"] == "run_queue_full"
        assert int(refused.headers["Retry-After"]) >= 1
        runs = every_run(two)
        assert len({run["id"] for run in runs}) == len(runs) == places
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

        with Watch(tmp_path / "one", tmp_path / "two") as watch:
            wait_for(lambda: enough(one, watch), at_most=200, what="both have run some")
            running = one.get("/runs", status="running")["runs"]
        assert len(running) <= 2
        assert set(watch.most.values()) == {1}
        makings = one.get("/holdfast/api/runs", job="ade.environment")["items"]
        made_once = [making for making in makings if making["args"]["configuration_id"] == configuration]
        assert len(made_once) == 1
        assert made_once[0]["attempt"] == 1


def enough(one: Service, watch: Watch) -> bool:
    """The host that did not make the build has restored its environment; no run has failed."""
    release(*watch.seen)
    assert one.get("/runs", status="failed")["runs"] == []
    return all(watch.seen.values()) and sum(map(len, watch.seen.values())) >= 3
