"""A worker and an orchestrator in separate processes: neither does the work of the other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.process.support import PROGRAMS
from tests.python_process import PythonProcess
from tests.waiting import wait_for

Start = Callable[..., "subprocess.Popen[bytes]"]
ROUNDS = 10


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest, load: Callable[..., Any]) -> Any:
    return load("split_role_jobs", request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def start(app: Any, tmp_path: Path) -> Iterator[Start]:
    """Start a Holdfast command and wait until its process is registered; it is stopped at the end of the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> subprocess.Popen[bytes]:
        with open(tmp_path / f"process-{len(started)}.log", "wb") as log:
            process = PythonProcess(
                [sys.executable, "-m", "holdfast", command[0], "split_role_jobs:hf", *command[1:]],
                cwd=PROGRAMS,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        started.append(process)
        wait_for(lambda: process.pid in [one.pid for one in app.hf.workers.list()], what="the process is registered")
        return process

    yield start
    for process in started:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(timeout=60)


def states(app: Any, run: Any) -> dict[str, str]:
    return {stage.name: stage.state for stage in app.hf.pipelines.show(run.id).stages}


def let_the_worker_poll(app: Any) -> None:
    """Let the worker poll many times: it executes one run after the other."""
    for _ in range(ROUNDS):
        app.beside.submit().result(timeout=60)


def let_the_orchestrator_poll(app: Any) -> None:
    """Let the orchestrator poll many times: it makes one delayed run ready after the other."""
    for _ in range(ROUNDS):
        run = app.beside.using(delay=0.05).submit()
        wait_for(partial(_is_ready, run), what="a delayed run is ready")


def _is_ready(run: Any) -> bool:
    return bool(run.refresh().snapshot.place == "ready")


@pytest.mark.contract("L2")
def test_a_worker_makes_no_stage_ready_and_an_orchestrator_executes_none(app: Any, start: Start) -> None:
    run = app.film.submit()
    new = dict.fromkeys(("script", "title", "audio", "render"), "NEW")
    worker = start("worker", "--no-orchestrator")
    let_the_worker_poll(app)
    assert states(app, run) == new, "a worker makes no stage ready, not even the first"
    end(worker)

    orchestrator = start("orchestrator")
    wait_for(lambda: states(app, run)["script"] == "READY", what="the orchestrator makes the first stage ready")
    let_the_orchestrator_poll(app)
    assert states(app, run) == new | {"script": "READY"}, "an orchestrator starts no stage"
    end(orchestrator)

    worker = start("worker", "--no-orchestrator")
    wait_for(lambda: states(app, run)["script"] == "DONE", what="the worker completes the first stage")
    let_the_worker_poll(app)
    assert states(app, run) == new | {"script": "DONE"}, "a worker makes no later stage ready"
    end(worker)

    orchestrator = start("orchestrator")
    ready = {"script": "DONE", "title": "READY", "audio": "READY", "render": "NEW"}
    wait_for(lambda: states(app, run) == ready, what="the orchestrator makes the stages after it ready")
    let_the_orchestrator_poll(app)
    assert states(app, run) == ready, "an orchestrator completes no stage"
    assert [one.state for one in app.hf.pipelines.segments(run, "audio")] == ["READY", "READY"]
    end(orchestrator)

    start("worker", "--no-orchestrator")
    done = {"script": "DONE", "title": "DONE", "audio": "NEW", "render": "NEW"}
    wait_for(
        lambda: states(app, run) == done and segments_done(app, run) == 2, what="the worker executes the ready stages"
    )
    let_the_worker_poll(app)
    assert states(app, run) == done, "a worker completes no split stage and makes no later stage ready"

    start("orchestrator")
    assert run.result(timeout=60) == "2 scenes: 30"
    assert set(states(app, run).values()) == {"DONE"}
    assert app.hf.verify() == []


def segments_done(app: Any, run: Any) -> int:
    [audio] = [stage for stage in app.hf.pipelines.show(run.id).stages if stage.name == "audio"]
    return int(audio.done)
