"""Timeouts, killed processes, locked databases and wrong settings."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from apps.records.settings import Settings
from apps.records.tests.records_server import RecordsServer
from apps.records.tests.test_records_running import blocked_process, contentions, note
from apps.shared.tests.serving import ROOT
from tests.process.support import wait_for

from holdfast import InvalidSetting


@pytest.fixture(scope="module")
def short_timeout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordsServer]:
    """A server whose runs time out after a few seconds, which is enough for a run to start."""
    with RecordsServer(tmp_path_factory.mktemp("short_timeout"), records_timeout=12) as running:
        yield running


@pytest.mark.contract("P5", "P8", "P9")
def test_a_killed_server_leaves_no_run_running(short_timeout: RecordsServer) -> None:
    with short_timeout.stuck(note("killed")) as document:
        run, next_one = document["runs"][0], short_timeout.process_again(document["id"])
        short_timeout.running(run["id"])
        child = wait_for(lambda: blocked_process(short_timeout.blob(document)), "the run's process has opened the file")
        short_timeout.kill()
        wait_for(lambda: not Path(f"/proc/{child}").exists(), "the run's process has ended with the server")
        with contextlib.closing(sqlite3.connect(short_timeout.database)) as other:
            assert other.execute("select count(*) from holdfast_leases").fetchone() == (1,)
    short_timeout.start()
    ended = short_timeout.ended(run["id"])
    assert (ended["state"], ended["failure_type"], ended["attempts"]) == ("FAILED", "PROCESS_TERMINATED", 1)
    assert [event["kind"] for event in ended["events"]][-1] == "RUN_FAILED"
    assert short_timeout.ended(next_one["id"])["state"] == "SUCCEEDED"  # queued runs are not affected
    assert short_timeout.process_again(document["id"])["number"] == 3
    assert short_timeout.run(run["id"])["state"] == "FAILED"


@pytest.mark.contract("P10", "P1")
def test_a_run_continues_while_the_database_is_locked_for_longer_than_a_lease(tmp_path: Path) -> None:
    content, lease = note("goes on"), timedelta(seconds=3)
    with (
        RecordsServer(tmp_path, holdfast_lease=lease.total_seconds(), holdfast_poll_interval=0.2) as server,
        contextlib.closing(sqlite3.connect(server.database, isolation_level=None, timeout=20)) as other,
    ):
        with server.stuck(content) as document:
            run = document["runs"][0]
            server.running(run["id"])
            wait_for(lambda: blocked_process(server.blob(document)), "the run's process has opened the file")
            other.execute("begin immediate")
            [(expires_at,)] = other.execute("select expires_at from holdfast_leases")
            over = datetime.fromisoformat(expires_at).replace(tzinfo=UTC) + lease
            wait_for(lambda: datetime.now(UTC) > over, "the lease expired long ago")
            assert server.run(run["id"])["state"] == "RUNNING"
            writer = os.open(server.blob(document), os.O_WRONLY)
        os.write(writer, content)  # now the run can read its file, and its steps wait for the database
        os.close(writer)
        other.execute("rollback")
        ended = server.ended(run["id"])
        assert (ended["state"], ended["attempts"]) == ("SUCCEEDED", 1)
        wait_for(lambda: contentions(server), "the contention is recorded")
        assert len(contentions(server)) == 1, "one lock, one event"


@pytest.mark.contract("P7")
def test_a_step_that_never_returns_is_killed_at_the_timeout(short_timeout: RecordsServer) -> None:
    with short_timeout.stuck(note("never returns")) as document:
        run, other = document["runs"][0], short_timeout.upload(note("beside it"))
        assert short_timeout.ended(other["runs"][0]["id"])["state"] == "SUCCEEDED"  # other runs continue meanwhile
        ended = short_timeout.ended(run["id"])
        assert blocked_process(short_timeout.blob(document)) is None  # the process was really killed
    assert (ended["state"], ended["failure_type"]) == ("TIMED_OUT", "TIMED_OUT")
    assert [event["kind"] for event in ended["events"]][-1] == "RUN_TIMED_OUT"
    assert [step["state"] for step in ended["steps"]] == ["FAILED", *["NOT_REACHED"] * 3]
    assert short_timeout.ended(short_timeout.process_again(document["id"])["id"])["started_at"]  # the key is free again


@pytest.mark.contract("P5")
def test_a_second_process_on_the_same_database_is_refused(short_timeout: RecordsServer) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "holdfast", "worker", "apps.records.jobs:hf"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOLDFAST_URL": short_timeout.url, "APP_FOLDER": str(short_timeout.folder)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert second.returncode != 0
    assert "single_process allows only one" in second.stderr


@pytest.mark.contract("P8")
def test_a_run_that_is_running_at_a_shutdown_fails_and_is_not_requeued(short_timeout: RecordsServer) -> None:
    with short_timeout.stuck(note("shutdown")) as document:
        [run] = document["runs"]
        short_timeout.running(run["id"])
        short_timeout.stop()
    # Look before the next start, which would end the run, too: this proves that the shutdown ended it.
    with contextlib.closing(sqlite3.connect(short_timeout.database)) as other:
        query = "select state, failure_type from holdfast_outcomes where run_id = ?"
        assert other.execute(query, (run["id"],)).fetchall() == [("failed", "PROCESS_TERMINATED")]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("RECORDS_TIMEOUT", "soon", "RECORDS_TIMEOUT"),
        ("RECORDS_CONCURRENCY", "0", "RECORDS_CONCURRENCY"),
        ("RECORDS_MAX_BITES", "9", "RECORDS_MAX_BITES"),
    ],
)
def test_an_invalid_setting_is_named_in_the_error(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        Settings.load({name: value})
