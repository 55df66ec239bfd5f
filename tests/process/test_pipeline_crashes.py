"""Killing workers does not change the results of pipelines and of parents with children."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.process.support import WorkerProcess, marks, overlaps
from tests.waiting import wait_for

Start = Callable[..., WorkerProcess]


def done(folder: Path, count: int) -> bool:
    return sum(mark.what == "end" for mark in marks(folder)) >= count


@pytest.mark.contract("L7", "L9", "S3")
def test_killing_workers_during_a_pipeline_does_not_change_its_result(
    load: Callable[..., Any], local_url: str, tmp_path: Path, start_worker: Start
) -> None:
    app = load("pipeline_jobs", local_url)
    workers = [start_worker("pipeline_jobs", "3").ready() for _ in range(3)]
    run = app.film.submit(count=30)
    killed: dict[int, float] = {}
    for ended in (8, 25, 45):
        wait_for(partial(done, tmp_path, ended), at_most=60)
        victim = workers.pop(0)
        victim.signal(signal.SIGKILL)
        killed[victim.pid] = time.clock_gettime(time.CLOCK_BOOTTIME)
        victim.process.wait()
        workers.append(start_worker("pipeline_jobs", "3").ready())
    result = run.result(timeout=90)

    assert result == "30: " + " ".join(f"a{number}v{number}" for number in range(30))
    assert {stage.name: (stage.state, stage.done) for stage in app.hf.pipelines.show(run.id).stages} == {
        "script": ("DONE", 1),
        "audio": ("DONE", 30),
        "visuals": ("DONE", 30),
        "render": ("DONE", 1),
    }
    found = marks(tmp_path)
    assert overlaps(found, killed=killed) == []
    starts = Counter(mark.run_id for mark in found if mark.what == "start")
    for run_id, count in starts.items():
        snapshot = app.hf.snapshot(run_id)
        assert count <= snapshot.takeovers + 1, "only runs of a lost worker are executed again"
    assert sum(count > 1 for count in starts.values()) <= 3 * 3, (
        "at most the three runs of each of three killed workers are executed again"
    )
    assert app.hf.verify() == []


@pytest.mark.contract("S3")
def test_an_isolated_parent_gathers_the_same_children_after_a_kill(
    load: Callable[..., Any], local_url: str, tmp_path: Path, start_worker: Start
) -> None:
    app = load("pipeline_jobs", local_url)
    victim = start_worker("pipeline_jobs", "2").ready()
    run = app.tree.submit(20)
    wait_for(partial(done, tmp_path, 5), at_most=60)
    victim.signal(signal.SIGKILL)
    victim.process.wait()
    with app.hf.worker(concurrency=4):
        assert run.result(timeout=60) == sum(range(20))
    assert len({mark.run_id for mark in marks(tmp_path)}) == 20
    assert app.hf.verify() == []
