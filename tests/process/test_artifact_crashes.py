"""Artifacts of a worker that is killed while it writes them."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.process.support import WorkerProcess
from tests.waiting import wait_for

from holdfast.artifacts.backends.base import PARTS


@pytest.mark.contract("L8", "L7")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_killed_while_writing_a_file_leaves_only_the_complete_files(
    request: pytest.FixtureRequest,
    load: Callable[..., Any],
    store: str,
    tmp_path: Path,
    start_worker: Callable[..., WorkerProcess],
    how: signal.Signals,
) -> None:
    app = load("artifact_jobs", request.getfixturevalue(f"{store}_url"))
    victim = start_worker("artifact_jobs").ready()
    run = app.film.submit(folder=tmp_path, frames=5)
    wait_for(lambda: (tmp_path / "stuck").exists())
    victim.signal(how)
    parts = tmp_path / "artifacts" / PARTS
    assert len(list(parts.iterdir())) == 1, "the partial file of the third frame"
    start_worker("artifact_jobs").ready()

    assert run.result(timeout=60) == 5000
    attempts = Counter(int(line.split()[0]) for line in (tmp_path / "frames.txt").read_text().splitlines())
    assert attempts == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1}, "only the incomplete file must be created again"
    assert [found.claim for found in app.hf.artifacts.of(run.id)] == [1, 1, 2, 2, 2]
    if how is signal.SIGSTOP:
        victim.signal(signal.SIGCONT)
        (tmp_path / "go").touch()
        wait_for(lambda: (tmp_path / "refused").exists())
        wait_for(lambda: not list(parts.iterdir()), what="the partial file of the stale worker is deleted")
    app.hf.prune()
    assert list(parts.iterdir()) == [], "pruning must delete the partial files of a dead worker"
    assert app.hf.verify(artifacts=True) == []
