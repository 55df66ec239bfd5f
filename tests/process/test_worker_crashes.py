"""Workers that are killed, stopped and restarted, and databases that restart under load."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.postgres import PostgresServer, postgres_server
from tests.process.support import PROGRAMS, WorkerProcess, gone, marks, overlaps
from tests.python_process import PythonProcess
from tests.waiting import wait_for

from holdfast import RunFailed

Start = Callable[..., WorkerProcess]
LEASE = 2.0


def ended(app: Any, run_ids: list[str]) -> bool:
    """Whether each of these runs has an outcome."""
    return all(app.hf.snapshot(run_id).ended for run_id in reversed(run_ids))


@pytest.mark.contract("S3", "L6", "L7")
def test_killing_a_worker_loses_and_duplicates_no_run(
    load: Callable[..., Any], local_url: str, tmp_path: Path, start_worker: Start
) -> None:
    app = load("marking_jobs", local_url)
    victim, other = start_worker("marking_jobs", "8"), start_worker("marking_jobs", "8")
    victim.ready()
    other.ready()
    runs = app.work.submit_many([{"number": number} for number in range(300)])
    wait_for(lambda: sum(mark.what == "end" for mark in marks(tmp_path)) > 60)
    victim.signal(signal.SIGKILL)
    killed_at = time.clock_gettime(time.CLOCK_BOOTTIME)
    victim.process.wait()
    wait_for(lambda: ended(app, [run.id for run in runs]), at_most=60)

    found = marks(tmp_path)
    assert [run.result(timeout=1) for run in runs] == list(range(300))
    assert overlaps(found, killed={victim.pid: killed_at}) == []
    again = [mark for mark in found if mark.what == "start" and mark.claim > 1]
    assert again, "the killed worker must have had unfinished runs"
    unfinished = {mark.run_id for mark in found if mark.pid == victim.pid} - {
        mark.run_id for mark in found if mark.pid == victim.pid and mark.what == "end"
    }
    assert unfinished <= {mark.run_id for mark in again}
    assert {app.hf.snapshot(mark.run_id).takeovers for mark in again} == {1}
    assert app.hf.verify() == []


@pytest.mark.contract("L5", "L7")
def test_a_worker_suspended_past_its_lease_cannot_finish_its_run(
    load: Callable[..., Any], local_url: str, tmp_path: Path, start_worker: Start
) -> None:
    app = load("marking_jobs", local_url)
    suspended = start_worker("marking_jobs").ready()
    run = app.wait.submit("go")
    wait_for(lambda: marks(tmp_path))
    suspended.signal(signal.SIGSTOP)
    with app.hf.worker():
        wait_for(lambda: len(marks(tmp_path)) == 2)
        (tmp_path / "go-1").touch()
        suspended.signal(signal.SIGCONT)
        refused = wait_for(
            lambda: [
                line
                for line in (tmp_path / "workers.log").read_text().splitlines()
                if run.id in line and ("lease" in line or "came too late" in line)
            ]
        )
        assert refused
        wait_for(lambda: [mark for mark in marks(tmp_path) if (mark.what, mark.claim) == ("end", 1)])
        assert run.refresh().snapshot.claim == 2
        assert run.state == "running"
        (tmp_path / "go-2").touch()
        assert run.result(timeout=60) == 2
    assert app.hf.verify() == []


def cli_worker(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "holdfast", "worker", "marking_jobs:hf", *options]
    return PythonProcess(command, cwd=PROGRAMS, stderr=subprocess.PIPE, text=True)


@pytest.mark.contract("S5")
def test_a_signal_lets_running_work_finish(load: Callable[..., Any], sqlite_url: str, tmp_path: Path) -> None:
    app = load("marking_jobs", sqlite_url)
    run, left = app.wait.submit("go"), app.wait.submit("go")
    with cli_worker("-c", "1") as worker:
        wait_for(lambda: marks(tmp_path))
        worker.send_signal(signal.SIGTERM)
        wait_for(lambda: any("stopping" in line for line in worker.stderr or ()))
        (tmp_path / "go-1").touch()
        assert worker.wait(timeout=60) == 0
    assert run.refresh().state == "succeeded"
    assert left.refresh().snapshot.claim == 0, "a stopping worker must claim nothing more"


@pytest.mark.contract("S5")
@pytest.mark.parametrize("job", ["wait", "wait_apart"])
def test_a_signal_releases_the_runs_that_do_not_finish_in_time(
    load: Callable[..., Any], sqlite_url: str, tmp_path: Path, job: str
) -> None:
    app = load("marking_jobs", sqlite_url, TEST_SHUTDOWN_GRACE=0.3)
    run = getattr(app, job).submit("go")
    with cli_worker() as worker:
        wait_for(lambda: marks(tmp_path))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=60) == 4
    snapshot = run.refresh().snapshot
    assert (snapshot.place, snapshot.claim, snapshot.attempt) == ("ready", 1, 0)
    (tmp_path / "go-2").touch()
    with app.hf.worker():
        assert run.result(timeout=60) == 2
    assert run.refresh().snapshot.attempt == 1
    assert app.hf.verify() == []


@pytest.mark.contract("S5")
@pytest.mark.parametrize("job", ["wait", "wait_apart"])
def test_a_second_signal_stops_at_once(load: Callable[..., Any], sqlite_url: str, tmp_path: Path, job: str) -> None:
    app = load("marking_jobs", sqlite_url, TEST_SHUTDOWN_GRACE=600)  # longer than the timeout of this test
    run = getattr(app, job).submit("go")
    with cli_worker() as worker:
        [first] = wait_for(lambda: marks(tmp_path))
        worker.send_signal(signal.SIGTERM)
        wait_for(lambda: any("stopping" in line for line in worker.stderr or ()))

        def is_stopped() -> bool:
            worker.send_signal(signal.SIGTERM)  # signals within two seconds count as one
            return worker.poll() is not None

        wait_for(is_stopped)
        assert worker.wait(timeout=60) == 5
        wait_for(lambda: gone(first.pid))
    (tmp_path / "go-2").touch()
    with app.hf.worker():
        assert run.result(timeout=60) == 2


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for one test, which stops or kills it."""
    with postgres_server(18, "--fsync=off") as server:
        yield server


@pytest.mark.contract("S3")
@pytest.mark.parametrize("how", ["fast", "immediate", "kill -9"])
def test_restarting_the_database_under_load_loses_no_run(
    load: Callable[..., Any], own_postgres: PostgresServer, tmp_path: Path, start_worker: Start, how: Any
) -> None:
    app = load("marking_jobs", own_postgres.url)
    workers = [start_worker("marking_jobs", "8"), start_worker("marking_jobs", "8")]
    for worker in workers:
        worker.ready()
    runs = app.work.submit_many([{"number": number} for number in range(300)])
    wait_for(lambda: sum(mark.what == "end" for mark in marks(tmp_path)) > 60)
    if how == "kill -9":
        own_postgres.kill()
    else:
        own_postgres.stop(how=how)
    restart(own_postgres)
    wait_for(lambda: _ended_or_away(app, [run.id for run in runs]), at_most=60)

    assert [worker.process.poll() for worker in workers] == [None, None], "the workers must survive the restart"
    assert [run.result(timeout=1) for run in runs] == list(range(300))
    assert overlaps(marks(tmp_path), killed={}) == []
    assert app.hf.verify() == []


@pytest.mark.contract("S3")
def test_result_and_aresult_keep_waiting_while_the_database_restarts(
    load: Callable[..., Any], own_postgres: PostgresServer
) -> None:
    app = load("marking_jobs", own_postgres.url)
    runs = [app.work.submit(number, 0.0) for number in range(2)]
    with ThreadPoolExecutor(2) as waiting:
        waits = [waiting.submit(runs[0].result, 60), waiting.submit(asyncio.run, runs[1].aresult(60))]
        wait_for(lambda: len(app.hf.waiter._watches) == 2, what="both wait")
        own_postgres.kill()
        restart(own_postgres)
        with app.hf.worker():
            assert [wait.result(60) for wait in waits] == [0, 1]


def restart(server: PostgresServer) -> None:
    """Start the server again; after a kill, its old processes may need a moment to end."""
    for _ in range(20):
        with contextlib.suppress(RuntimeError):
            server.start("--fsync=off")
            return
        time.sleep(0.25)
    raise AssertionError(server.log()[-2000:])


def _ended_or_away(app: Any, run_ids: list[str]) -> bool:
    from holdfast import StoreUnavailable

    try:
        return ended(app, run_ids)
    except StoreUnavailable:
        return False


@pytest.mark.contract("S3", "Q12")
def test_eight_workers_on_one_sqlite_file_execute_each_run_once(
    load: Callable[..., Any], sqlite_url: str, tmp_path: Path, start_worker: Start
) -> None:
    # The default lease: a worker on a busy machine must not look dead.
    app = load("marking_jobs", sqlite_url, TEST_LEASE=15)
    app.hf.start()
    workers = [start_worker("marking_jobs", "8") for _ in range(8)]
    for worker in workers:
        worker.ready()
    submitted: list[Any] = []
    for first in range(0, 2000, 100):  # while the workers run
        many = [{"number": number, "seconds": 0.0} for number in range(first, first + 100)]
        submitted += app.work.submit_many(many)
    wait_for(lambda: ended(app, [run.id for run in submitted]), at_most=60)

    starts = Counter(mark.run_id for mark in marks(tmp_path) if mark.what == "start")
    assert len(starts) == 2000
    twice = [run_id for run_id, count in starts.items() if count > 1]
    assert not twice, [(app.hf.snapshot(run_id), app.hf.timeline(run_id)) for run_id in twice[:3]]
    assert len({mark.pid for mark in marks(tmp_path)}) > 1, "several workers must have executed runs"
    assert "locked" not in (tmp_path / "workers.log").read_text()
    assert app.hf.verify() == []


@pytest.mark.contract("P5")
def test_a_single_process_fails_the_runs_of_its_killed_predecessor(
    load: Callable[..., Any], local_url: str, tmp_path: Path, start_worker: Start
) -> None:
    app = load("marking_jobs", local_url, TEST_SOLO=1)
    first = start_worker("marking_jobs").ready()
    run, queued = app.wait.submit("never"), app.wait.submit("go")
    wait_for(lambda: len(marks(tmp_path)) == 2)
    refused = start_worker("marking_jobs")
    line = refused.read_line()
    assert str(first.pid) in line, "the error must name the first process"
    assert refused.process.wait(timeout=60) == 3

    first.signal(signal.SIGKILL)
    first.process.wait()
    second = start_worker("marking_jobs").ready()
    for orphan in (run, queued):
        with pytest.raises(RunFailed):
            orphan.result(timeout=60)
        assert orphan.refresh().snapshot.failure_type == "PROCESS_TERMINATED"
    (tmp_path / "go-1").touch()
    assert app.wait.submit("go").result(timeout=60) == 1
    second.signal(signal.SIGTERM)
    assert second.process.wait(timeout=60) == 0
    assert app.hf.verify() == []


@pytest.mark.contract("J2")
def test_an_exclusive_worker_is_the_only_one_and_is_replaced_within_a_lease(
    load: Callable[..., Any], local_url: str, start_worker: Start
) -> None:
    load("marking_jobs", local_url)
    first = start_worker("marking_jobs", "4", "scheduler").ready()
    refused = start_worker("marking_jobs", "4", "scheduler")
    assert f"pid {first.pid}" in refused.read_line()
    assert refused.process.wait(timeout=60) == 3

    first.signal(signal.SIGKILL)
    first.process.wait()
    start_worker("marking_jobs", "4", "scheduler").ready()  # a worker waits at most one lease for its exclusive name


@pytest.mark.contract("S3")
def test_a_submitter_whose_connections_are_killed_loses_no_run_and_duplicates_none(
    load: Callable[..., Any], postgres_url: str
) -> None:
    app = load("marking_jobs", postgres_url)
    app.hf.start()
    stop = threading.Event()
    killed = 0

    def kill() -> None:
        nonlocal killed
        with psycopg.connect(postgres_url, autocommit=True, application_name="killer") as connection:
            while not stop.wait(0.3):
                rows = connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where datname = current_database() and application_name = 'holdfast'"
                ).fetchall()
                killed += len(rows)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        runs: list[Any] = []
        while killed < 10:
            runs += [app.work.submit(len(runs), 0.0)]
    finally:
        stop.set()
        killer.join()

    with psycopg.connect(postgres_url) as connection:
        stored = connection.execute("select id from holdfast_runs order by id").fetchall()
    assert [row[0] for row in stored] == sorted(run.id for run in runs)
    with app.hf.worker(concurrency=8):
        assert [run.result(timeout=60) for run in runs] == list(range(len(runs)))
    assert app.hf.verify() == []


@pytest.mark.contract("S3")
def test_a_submitter_whose_idle_connections_were_all_cut_does_not_fail(
    load: Callable[..., Any], postgres_url: str
) -> None:
    app = load("marking_jobs", postgres_url)
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(app.hf.store.reading())
    with psycopg.connect(postgres_url, autocommit=True, application_name="killer") as connection:
        cut = connection.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where datname = current_database() and application_name = 'holdfast'"
        ).fetchall()
    assert len(cut) >= 12

    run = app.work.submit(1)
    assert app.hf.snapshot(run.id).state == "queued"
