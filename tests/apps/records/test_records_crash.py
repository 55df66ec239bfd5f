"""What is left when time runs out, or the process is killed."""

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
from tests.apps.records.serving import Served
from tests.apps.records.test_records_running import contentions, note, who_waits_for
from tests.apps.serving import ROOT
from tests.process.support import wait_for

from holdfast import InvalidSetting


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An archive whose runs may take a few seconds: enough to start, and not to be waited for too long."""
    with Served(tmp_path_factory.mktemp("hasty"), records_timeout=12) as found:
        yield found


@pytest.mark.contract("P5", "P8", "P9")
def test_a_process_that_is_killed_in_the_middle_leaves_nothing_running(hasty: Served) -> None:
    with hasty.stuck(note("killed")) as document:
        run, next_one = document["runs"][0], hasty.again(document["id"])
        hasty.running(run["id"])
        child = wait_for(lambda: who_waits_for(hasty.blob(document)), "its process has opened the file")
        hasty.kill()
        wait_for(lambda: not Path(f"/proc/{child}").exists(), "its process has ended with it")
        with contextlib.closing(sqlite3.connect(hasty.database)) as other:
            assert other.execute("select count(*) from holdfast_leases").fetchone() == (1,)
    hasty.start()
    ended = hasty.ended(run["id"])
    assert (ended["state"], ended["failure_type"], ended["attempts"]) == ("FAILED", "PROCESS_TERMINATED", 1)
    assert [event["kind"] for event in ended["events"]][-1] == "RUN_FAILED"
    assert hasty.ended(next_one["id"])["state"] == "SUCCEEDED"  # whatever was queued goes on
    assert hasty.again(document["id"])["number"] == 3  # and the killed one stays as it is
    assert hasty.run(run["id"])["state"] == "FAILED"


@pytest.mark.contract("P10", "P1")
def test_a_run_goes_on_while_someone_locks_the_database_for_longer_than_a_lease(tmp_path: Path) -> None:
    content, lease = note("goes on"), timedelta(seconds=3)
    with (
        Served(tmp_path, holdfast_lease=lease.total_seconds(), holdfast_tick=0.2) as served,
        contextlib.closing(sqlite3.connect(served.database, isolation_level=None, timeout=20)) as other,
    ):
        with served.stuck(content) as document:
            run = document["runs"][0]
            served.running(run["id"])
            wait_for(lambda: who_waits_for(served.blob(document)), "its process has opened the file")
            other.execute("begin immediate")
            [(expires_at,)] = other.execute("select expires_at from holdfast_leases")
            over = datetime.fromisoformat(expires_at).replace(tzinfo=UTC) + lease
            wait_for(lambda: datetime.now(UTC) > over, "its lease ran out long ago")
            assert served.run(run["id"])["state"] == "RUNNING"
            writer = os.open(served.blob(document), os.O_WRONLY)
        os.write(writer, content)  # now it can read its file, and its steps wait for the database
        os.close(writer)
        other.execute("rollback")
        ended = served.ended(run["id"])
        assert (ended["state"], ended["attempts"]) == ("SUCCEEDED", 1)
        wait_for(lambda: contentions(served), "it is recorded")
        assert len(contentions(served)) == 1, "one block, one event"


@pytest.mark.contract("P7")
def test_a_step_that_never_returns_is_stopped_when_its_time_is_over(hasty: Served) -> None:
    with hasty.stuck(note("never returns")) as document:
        run, other = document["runs"][0], hasty.hand_in(note("beside it"))
        assert hasty.ended(other["runs"][0]["id"])["state"] == "SUCCEEDED"  # the others go on meanwhile
        ended = hasty.ended(run["id"])
        assert who_waits_for(hasty.blob(document)) is None  # its process is gone, not merely forgotten
    assert (ended["state"], ended["failure_type"]) == ("TIMED_OUT", "TIMED_OUT")
    assert [event["kind"] for event in ended["events"]][-1] == "RUN_TIMED_OUT"
    assert [step["state"] for step in ended["steps"]] == ["FAILED", *["NOT_REACHED"] * 3]
    assert hasty.ended(hasty.again(document["id"])["id"])["started_at"]  # its place is free


@pytest.mark.contract("P5")
def test_a_second_process_on_the_same_database_is_refused(hasty: Served) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "holdfast", "worker", "apps.records.jobs:hf"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOLDFAST_URL": hasty.url, "APP_FOLDER": str(hasty.folder)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert second.returncode != 0
    assert "solo means one" in second.stderr


@pytest.mark.contract("P8")
def test_a_run_that_is_under_way_at_a_shutdown_ends_and_does_not_go_back(hasty: Served) -> None:
    with hasty.stuck(note("shutdown")) as document:
        [run] = document["runs"]
        hasty.running(run["id"])
        hasty.stop()
    # Before the next start, which would end whatever it finds: so that it is the shutdown that has ended it.
    with contextlib.closing(sqlite3.connect(hasty.database)) as other:
        asked = "select state, failure_type from holdfast_outcomes where run_id = ?"
        assert other.execute(asked, (run["id"],)).fetchall() == [("failed", "PROCESS_TERMINATED")]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("RECORDS_TIMEOUT", "soon", "RECORDS_TIMEOUT"),
        ("RECORDS_CONCURRENCY", "0", "RECORDS_CONCURRENCY"),
        ("RECORDS_MAX_BITES", "9", "RECORDS_MAX_BITES"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named_at_start(name: str, value: str, says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        Settings.load({name: value})
