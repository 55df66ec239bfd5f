"""Builds requested, executed and lost by real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.listing import runs_of
from tests.process.support import PROGRAMS, WorkerProcess, gone
from tests.python_process import PythonProcess
from tests.waiting import wait_for

from holdfast import RunFilter

Start = Callable[..., WorkerProcess]


@pytest.fixture
def submitters() -> Iterator[list[subprocess.Popen[str]]]:
    """Four processes that each submit 250 runs after a line of input."""
    started = [
        PythonProcess(
            [sys.executable, str(PROGRAMS / "build_jobs.py"), str(250 * number), "250"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    yield started
    for process in started:
        process.kill()
        process.communicate()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def built(folder: Path) -> list[tuple[str, int]]:
    path = folder / "built.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(run_id, int(pid)) for run_id, pid in (line.split() for line in lines)]


@pytest.mark.contract("Q4", "Q5", "Q10")
def test_a_thousand_submissions_from_four_processes_create_one_build(
    load: Callable[..., Any], local_url: str, tmp_path: Path, start_worker: Start, request: pytest.FixtureRequest
) -> None:
    app = load("build_jobs", local_url)
    app.hf.start()
    submitters: list[subprocess.Popen[str]] = request.getfixturevalue("submitters")
    for worker in [start_worker("build_jobs", "4"), start_worker("build_jobs", "4")]:
        worker.ready()
    assert [read_line(process) for process in submitters] == ["ready"] * 4
    for process in submitters:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [read_line(process) for process in submitters] == ["done"] * 4

    def counted(state: str) -> int:
        return int(app.hf.count(RunFilter(job="process", state=state)).number)

    wait_for(lambda: counted("succeeded") == 1000, at_most=60, what="a thousand runs have succeeded")
    [build] = app.hf.builds.list()
    assert (build.state, build.result) == ("ready", '"/environments/c1"')
    assert [run_id for run_id, _ in built(tmp_path)] == [build.run_id], "the build must be executed only once"
    assert [run.id for run in runs_of(app.hf, job="environment")] == [build.run_id]
    assert app.hf.verify() == []


@pytest.mark.contract("Q14", "Q11")
def test_a_build_whose_worker_is_killed_twice_fails_with_its_waiting_runs(
    load: Callable[..., Any], local_url: str, tmp_path: Path, start_worker: Start
) -> None:
    (tmp_path / "hang").touch()
    app = load("build_jobs", local_url, TEST_LEASE=2)
    request = app.environment.request(configuration_id="c1", fingerprint="f1")
    waiting = app.process.using(depends_on=[request]).submit(1)
    workers = [start_worker("build_jobs").ready(), start_worker("build_jobs").ready()]
    for number in (1, 2):
        execution = f"execution {number} of the build"
        wait_for(lambda number=number: len(built(tmp_path)) == number, at_most=60, what=execution)  # type: ignore[misc]
        [victim] = [worker for worker in workers if worker.pid == built(tmp_path)[-1][1]]
        victim.signal(signal.SIGKILL)
        victim.process.wait()
    (tmp_path / "hang").unlink()
    start_worker("build_jobs").ready()
    wait_for(lambda: waiting.refresh().snapshot.ended, at_most=60)
    assert waiting.snapshot.failure_type == "BUILD_FAILED"
    assert "build failed: 2 workers were lost while executing this run" in waiting.snapshot.error
    assert len(built(tmp_path)) == 2

    again = app.process.using(depends_on=[request]).submit(2)
    assert again.result(timeout=60) == "2 in /environments/c1", "the next request must rebuild it"
    assert app.hf.verify() == []


@pytest.mark.contract("S3")
def test_an_isolated_run_reads_the_results_of_its_dependencies(load: Callable[..., Any], url: str) -> None:
    app = load("build_jobs", url)
    request = app.environment.request(configuration_id="c1", fingerprint="f1")
    with app.hf.worker():
        isolated = app.isolated.using(depends_on=[request]).submit()
        later = app.isolated_async.using(depends_on=[request]).submit()
        value, needed = isolated.result(timeout=60)
        assert value == "/environments/c1"
        assert needed == [app.hf.builds.get(request).run_id]
        assert later.result(timeout=60) == "/environments/c1"


@pytest.mark.contract("Q13", "Q11", "Q3")
@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_a_build_that_times_out_or_is_cancelled_is_stopped_with_its_child_processes(
    load: Callable[..., Any], sqlite_url: str, tmp_path: Path, how: str
) -> None:
    app = load("build_jobs", sqlite_url, TEST_TIMEOUT=6 if how == "timeout" else 60)
    request = app.endless.request(fingerprint="f1")
    waiting = app.process.using(depends_on=[request]).submit(1)
    with app.hf.worker():
        pids = wait_for(lambda: (file := tmp_path / "pids.txt").exists() and file.read_text().split())
        if how == "cancel":
            app.hf.cancel(app.hf.builds.get(request).run_id, reason="no longer wanted")
        wait_for(lambda: waiting.refresh().snapshot.ended, at_most=60)
    assert [pid for pid in pids if not gone(int(pid))] == []
    expected = {"timeout": "build failed: it timed out: ", "cancel": "build failed: it was cancelled: no longer wanted"}
    assert waiting.snapshot.error.startswith(expected[how])
    assert app.hf.builds.get(request).state == {"timeout": "failed", "cancel": "cancelled"}[how]
