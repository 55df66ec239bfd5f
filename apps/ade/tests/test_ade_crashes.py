"""Crashes of ade: kill -9 of the server during builds and runs, and timeouts."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest
from apps.ade.tests.ade_service import (
    MANY_ROWS,
    RULES,
    SLOW,
    Service,
    engines,
    files,
    held_rules,
    programs,
    release,
    stores,
)
from tests.process.support import wait_for

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("own_url", stores(long="postgres"), indirect=True)
@pytest.mark.contract("Q5", "Q8", "Q13", "Q14")
def test_killed_servers_and_timeouts_leave_no_run_build_or_process_behind(own_url: str, tmp_path: Path) -> None:
    """A build whose server is killed is executed again; if this happens twice, the build fails. A run fails after the
    first kill.

    The last service has short timeouts: slow work fails with a message, and leaves no process behind.
    """
    folder = tmp_path / "one"
    settings: dict[str, Any] = {"holdfast_lease": 3, "holdfast_poll_interval": 0.3, "ade_max_builds": 2}
    with Service(own_url, folder, ade_queue_size=3, **settings) as first:
        assert max_queued(first) == 3
        workspace = first.workspace(f"crash {secrets.token_hex(4)}")
        document = first.document(workspace, MANY_ROWS)

        def submit(name: str, rules: str) -> dict[str, Any]:
            return first.submit(first.configuration(workspace, name, files(name, rules)), document)

        slow = submit("slow", RULES + SLOW)
        wait_for(lambda: engines(folder), what="the engine runs")
        lucky, unlucky = submit("lucky", held_rules()), submit("unlucky", held_rules())
        wait_for(lambda: len(checking(folder)) == 2, what="both builds are executing")
        running = first.get("/runs", status="running")["runs"]
        assert [run["id"] for run in running] == [slow["id"]]
        path = f"/configurations/{slow['configuration_id']}/runs"
        refused = first.post(path, status=429, json={"input_document_id": document})  # a running run counts, too
        assert refused["code"] == "run_queue_full"
        first.kill()
    wait_for(lambda: not programs(folder), what="no program outlives the API")
    for left in checking(folder):
        left.unlink()

    with Service(own_url, folder, **settings) as second:
        assert max_queued(second) is None  # a server without ADE_QUEUE_SIZE removes the limit
        ended = second.ended(slow["id"])
        assert ended["status"] == "failed"
        assert "was lost" in ended["message"]
        assert ended["started_at"] is not None
        wait_for(lambda: len(checking(folder)) == 2, what="both builds execute once more")
        assert second.get(f"/runs/{lucky['id']}")["status"] == "queued"
        release(folder, only="lucky")
        assert second.ended(lucky["id"])["status"] == "succeeded"
        second.kill()

    short = {"ade_run_timeout_seconds": 10, "ade_build_timeout": 4}
    with Service(own_url, folder, **settings, **short) as third:
        ended = third.ended(unlucky["id"])
        assert ended["status"] == "failed"
        assert ended["message"].startswith("build failed: ")
        assert third.get(f"/builds/{unlucky['build_id']}")["status"] == "failed"
        again = third.submit(lucky["configuration_id"], document)
        assert third.ended(again["id"])["status"] == "succeeded"
        assert third.get(f"/runs/{slow['id']}")["status"] == "failed"

        held = third.submit(third.configuration(workspace, "held", files("held", held_rules())), document)
        ended = third.ended(third.submit(slow["configuration_id"], document)["id"])
        assert (ended["status"], ended["build"]["status"]) == ("failed", "ready")
        assert ended["message"].startswith("the run took longer than 10 s (ADE_RUN_TIMEOUT_SECONDS)")
        assert engines(folder) == {}
        ended = third.ended(held["id"])
        assert (ended["status"], ended["build"]["status"]) == ("failed", "failed")
        assert ended["message"].startswith("build failed: it timed out: Timed out after 4 s")
        wait_for(lambda: not programs(folder), what="nothing runs in the folder")


def checking(folder: Path) -> list[Path]:
    return list((folder / "checks").glob("*/waiting"))


def max_queued(one: Service) -> int | None:
    one.get("/runs")
    [queue] = [queue for queue in one.get("/holdfast/api/queues")["items"] if queue["name"] == "ade"]
    limit: int | None = queue["max_queued"]
    return limit
