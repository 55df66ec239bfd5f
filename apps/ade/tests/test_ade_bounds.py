"""Limits of a run: timeout, shutdown, queue size and cancelled builds; and the views for SQL clients."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from apps.ade.tests.ade_service import (
    MANY_ROWS,
    RULES,
    SLOW,
    Service,
    engines,
    files,
    held_rules,
    release,
    stores,
)
from apps.shared.database import DRIVERS
from apps.shared.tests.serving import ROOT
from tests.process.support import wait_for

pytestmark = pytest.mark.timeout(300)

TIMEOUT, KILL_GRACE, SLACK = 6, 3, 20
"""In seconds. The slack allows for a busy machine, and is far below the timeout of a build."""


@contextlib.contextmanager
def prepared(url: str, folder: Path, **settings: Any) -> Iterator[tuple[Service, str, str]]:
    """Start a service; yield it with the ids of a workspace and of a document."""
    with Service(url, folder, **settings) as one:
        workspace = one.workspace(f"bounds {secrets.token_hex(4)}")
        yield one, workspace, one.document(workspace, MANY_ROWS)


@pytest.mark.parametrize("own_url", stores(long="postgres"), indirect=True)
@pytest.mark.contract("Q13")
def test_a_running_run_times_out_even_while_it_waits_for_a_lock(own_url: str, tmp_path: Path) -> None:
    """The test holds the lock of the run's environment, so the engine never starts."""
    with prepared(own_url, tmp_path / "one", ade_run_timeout_seconds=TIMEOUT) as (one, workspace, document):
        configuration = one.configuration(workspace, "plain", files())
        first = one.ended(one.submit(configuration, document)["id"])
        assert first["status"] == "succeeded"
        [lock] = (one.folder / "environments").glob("*.lock")
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            ended = one.ended(one.submit(configuration, document)["id"])
        assert ended["status"] == "failed"
        assert ended["message"].startswith(f"the run took longer than {TIMEOUT} s (ADE_RUN_TIMEOUT_SECONDS)")
        took = datetime.fromisoformat(ended["finished_at"]) - datetime.fromisoformat(ended["started_at"])
        assert TIMEOUT <= took.total_seconds() < TIMEOUT + KILL_GRACE + SLACK


@pytest.mark.parametrize("own_url", stores(long="sqlite"), indirect=True)
@pytest.mark.contract("Q16", "S5")
def test_a_run_interrupted_by_a_shutdown_fails_and_does_not_start_again(own_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    with prepared(own_url, folder) as (one, workspace, document):
        run = one.submit(one.configuration(workspace, "slow", files("slow", RULES + SLOW)), document)
        wait_for(lambda: engines(folder), what="the engine runs")
        one.stop()
    with Service(own_url, folder) as two:
        ended = two.ended(run["id"])
        assert ended["status"] == "failed"
        assert ended["message"].startswith("the worker shut down and the run did not finish within the shutdown grace")
        assert two.get(f"/holdfast/api/runs/{run['id']}")["attempt"] == 1
        assert engines(folder) == {}


@pytest.mark.parametrize("own_url", stores(long="postgres"), indirect=True)
@pytest.mark.contract("Q8")
def test_only_a_server_sets_the_queue_size(own_url: str, tmp_path: Path) -> None:
    script = "from apps.ade.jobs import database\nwith database.read(): pass"
    with prepared(own_url, tmp_path / "one", ade_queue_size=1) as (one, workspace, document):
        configuration = one.configuration(workspace, "held", files("held", held_rules()))
        one.submit(configuration, document)
        for variables, warning in (
            ({}, "is not set here, but the server has set 1"),
            ({"ADE_QUEUE_SIZE": "7"}, "is 7 here"),
        ):
            environment = {name: value for name, value in os.environ.items() if not name.startswith("ADE_")}
            environment |= {"HOLDFAST_URL": own_url, "ADE_FOLDER": str(tmp_path / "other"), **variables}
            process = subprocess.run(
                [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
            )
            assert f"ADE_QUEUE_SIZE {warning}" in process.stderr
            path = f"/configurations/{configuration}/runs"
            refused = one.post(path, status=429, json={"input_document_id": document})
            assert refused["code"] == "run_queue_full"
        page = one.http.get("/runs", headers={"Accept": "text/html"}).text
        assert "At most 1 run may be queued or running" in page
        release(one.folder)


@pytest.mark.parametrize("own_url", stores(long="postgres"), indirect=True)
@pytest.mark.contract("Q3", "Q11", "Q15")
def test_a_build_cancelled_at_once_fails_its_runs_and_the_views_show_it(own_url: str, tmp_path: Path) -> None:
    with prepared(own_url, tmp_path / "one", holdfast_poll_interval=1) as (one, workspace, document):
        plain = one.configuration(workspace, "plain", files())
        done = one.ended(one.submit(plain, document)["id"])

        cancelled = []
        for number in range(8):  # the orchestrator races with the cancellation, so try often enough for both orders
            configuration = one.configuration(workspace, f"n{number}", files(f"n{number}", held_rules()))
            run = one.submit(configuration, document)
            build = one.post(f"/builds/{run['build_id']}/cancel", status=200)
            assert build["status"] in ("cancelled", "building")
            cancelled.append(run)
        for run in cancelled:
            ended = one.ended(run["id"])
            assert (ended["status"], ended["build"]["status"]) == ("failed", "cancelled")
            assert ended["message"].startswith("build failed: it was cancelled")
        again = one.submit(cancelled[0]["configuration_id"], document)
        wait_for(lambda: list((one.folder / "checks").glob("*/waiting")), what="the build executes once more")
        release(one.folder)
        again = one.ended(again["id"])
        assert (again["status"], again["build"]["status"]) == ("succeeded", "ready")

        build_run = one.get("/holdfast/api/runs", job="ade.environment")["items"][-1]["id"]
        one.post(f"/holdfast/api/builds/{build_run}/invalidate", status=200, json={"reason": "a package was withdrawn"})
        stale = one.get(f"/builds/{done['build_id']}")
        assert stale["status"] == "ready"
        assert "a package was withdrawn" in stale["message"]

        row = view_row(own_url, "ade_runs", done["id"])
        columns = ("workspace_id", "configuration_id", "configuration_version", "input_document_id", "build_id")
        assert {name: row[name] for name in columns} == {name: done[name] for name in columns}
        assert (row["status"], row["message"]) == ("succeeded", None)
        assert row["created_at"] < row["started_at"] < row["finished_at"]
        assert view_row(own_url, "ade_runs", cancelled[1]["id"])["status"] == "failed"
        for build_id, status in {done["build_id"]: "ready", cancelled[1]["build_id"]: "cancelled"}.items():
            row = view_row(own_url, "ade_builds", build_id)
            assert row["status"] == one.get(f"/builds/{build_id}")["status"] == status
            assert row["finished_at"] is not None
            assert {"configuration_id", "fingerprint", "created_at", "started_at"} <= set(row)


def view_row(url: str, view: str, row_id: str) -> dict[str, Any]:
    """Read one row of a view, as any SQL client would."""
    scheme, _, rest = url.partition("://")
    engine = sqlalchemy.create_engine(f"{DRIVERS[scheme]}://{rest}")
    try:
        with engine.connect() as connection:
            query = sqlalchemy.text(f"select * from {view} where id = :id")
            return dict(connection.execute(query, {"id": row_id}).mappings().one())
    finally:
        engine.dispose()
