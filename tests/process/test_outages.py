"""Outages: a database that is locked for longer than a lease, and workers that live for less than a lease."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.process.support import WorkerProcess
from tests.waiting import wait_for

Start = Callable[..., WorkerProcess]
LEASE = 3.0
PATIENCE = 60.0

pytestmark = pytest.mark.timeout(180)


@contextlib.contextmanager
def locked_by_another_connection(app: Any, url: str) -> Iterator[None]:
    """Block writes to the leases, on SQLite to the whole database; reads still work."""
    if url.startswith("sqlite"):
        other = app.hf.store.dialect.connect()
        begin, end = "begin immediate", "rollback"
    else:
        other = psycopg.connect(url, autocommit=True)
        begin, end = "begin; lock table holdfast_leases in share row exclusive mode", "rollback"
    with contextlib.closing(other):
        wait_for(lambda: _done(other, begin))
        yield
        other.execute(end)


def _done(connection: Any, statement: str) -> bool:
    try:
        connection.execute(statement)
    except Exception:  # a worker is writing just now
        with contextlib.suppress(Exception):
            connection.execute("rollback")
        return False
    return True


def begun(folder: Path, run: Any, claim: int = 1) -> bool:
    return (folder / f"begun-{run.id}-{claim}").exists()


@pytest.mark.contract("P10", "L4", "L7", "S3")
def test_runs_continue_while_the_database_is_locked_for_longer_than_a_lease(
    load: Callable[..., Any], local_url: str, tmp_path: Path, start_worker: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = load("outage_jobs", local_url, TEST_LEASE=LEASE)
    start_worker("outage_jobs").ready()
    runs = [app.in_thread.submit(tmp_path), app.in_process.submit(tmp_path)]
    wait_for(lambda: all(begun(tmp_path, run) for run in runs), at_most=PATIENCE)

    with locked_by_another_connection(app, local_url):
        monkeypatch.setenv("TEST_BUSY_TIMEOUT", str(PATIENCE))
        late_worker = start_worker(
            "outage_jobs"
        )  # it waits for the lock, and must not take over the runs when it gets the lock
        (tmp_path / "locked").touch()
        over = max(run.refresh().snapshot.expires_at for run in runs) + app.hf.settings.lease
        wait_for(lambda: app.hf.clock.now() > over, at_most=PATIENCE)
        assert [run.refresh().state for run in runs] == ["running", "running"]
    late_worker.ready()

    assert [run.result(timeout=PATIENCE) for run in runs] == [1, 1]
    for run in runs:
        seen = run.refresh().snapshot
        assert (seen.claim, seen.attempt, seen.takeovers) == (1, 1, 0)
        kinds = [event.kind for event in run.timeline()]
        assert {"PROGRESS", "LOG"} <= set(kinds)
        assert kinds.count("STEP_FINISHED") == 2
        assert [found.name for found in app.hf.artifacts.of(run.id)] == ["out.txt"]
    # Each worker records the block once, with its next commit.
    contended = wait_for(lambda: contentions(app), at_most=PATIENCE)
    assert 1 <= len(contended) <= 2
    assert len({event.data["worker"] for event in contended}) == len(contended)
    assert app.hf.verify() == []


@pytest.mark.contract("L6", "L7", "S3")
def test_workers_that_live_for_less_than_a_lease_take_over_lost_runs(
    load: Callable[..., Any], local_url: str, tmp_path: Path, start_worker: Start
) -> None:
    app = load("outage_jobs", local_url, TEST_LEASE=5)
    victim = start_worker("outage_jobs").ready()
    run = app.hangs_once.using(timeout=None).submit(tmp_path)
    wait_for(lambda: begun(tmp_path, run), at_most=PATIENCE)
    kill(victim)

    killed = 0
    while not run.refresh().snapshot.ended and killed < 60:
        short_lived = start_worker("outage_jobs").ready()
        with contextlib.suppress(AssertionError):
            wait_for(lambda: run.refresh().snapshot.ended, at_most=1)
        kill(short_lived)
        killed += 1

    assert run.result(timeout=1) == 2
    assert (run.snapshot.attempt, run.snapshot.takeovers) == (1, 1)
    assert killed > 1, "each worker lives about a second, so a takeover takes more than one worker"


@pytest.mark.contract("L6", "L7", "Q14")
def test_an_outage_longer_than_the_timeout_does_not_fail_the_run(
    load: Callable[..., Any], local_url: str, tmp_path: Path, start_worker: Start
) -> None:
    app = load("outage_jobs", local_url, TEST_LEASE=1)
    victim = start_worker("outage_jobs").ready()
    run = app.hangs_once.submit(tmp_path)
    wait_for(lambda: begun(tmp_path, run), at_most=PATIENCE)
    kill(victim)
    left = run.refresh().snapshot
    assert left.expires_at < left.deadline_at, "its worker was killed well before the deadline"
    wait_for(lambda: app.hf.clock.now() > left.deadline_at, at_most=PATIENCE)

    start_worker("outage_jobs").ready()

    assert run.result(timeout=PATIENCE) == 2
    assert (run.snapshot.attempt, run.snapshot.takeovers) == (1, 1)


def kill(worker: WorkerProcess) -> None:
    worker.signal(signal.SIGKILL)
    worker.process.wait()


def contentions(app: Any) -> list[Any]:
    return [event for _, event in app.hf.events(kinds=["DATABASE_BUSY"]).events]


@pytest.mark.contract("J2")
def test_a_worker_that_could_not_write_for_longer_than_a_lease_keeps_its_exclusive_name(
    load: Callable[..., Any], local_url: str, start_worker: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = load("outage_jobs", local_url, TEST_LEASE=LEASE)
    start_worker("outage_jobs", "4", "only").ready()

    with locked_by_another_connection(app, local_url):
        monkeypatch.setenv("TEST_BUSY_TIMEOUT", str(PATIENCE))
        # The second worker waits for the lock too, and may get it before the first.
        second = start_worker("outage_jobs", "4", "only")
        over = app.hf.clock.now() + 2 * app.hf.settings.lease
        wait_for(lambda: app.hf.clock.now() > over, at_most=PATIENCE)

    assert "the name 'only' is taken by worker" in second.read_line()
