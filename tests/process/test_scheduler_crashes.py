"""A schedule shared by several processes, one of which is killed."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.process.support import WorkerProcess
from tests.waiting import wait_for


@pytest.mark.contract("J3", "J7", "S3")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_three_processes_share_a_schedule_and_each_slot_starts_exactly_once(
    request: pytest.FixtureRequest,
    load: Callable[..., Any],
    tmp_path: Path,
    start_worker: Callable[..., WorkerProcess],
    kind: str,
) -> None:
    app = load("scheduled_jobs", request.getfixturevalue(f"{kind}_url"))
    workers = [start_worker("scheduled_jobs", "2") for _ in range(3)]
    for worker in workers:
        worker.ready()

    wait_for(lambda: len(lines(tmp_path)) >= 4)
    workers[0].signal(signal.SIGKILL)
    workers[0].process.wait()
    wait_for(lambda: len(lines(tmp_path)) >= 9, at_most=60)
    for worker in workers[1:]:
        worker.signal(signal.SIGTERM)
        worker.process.wait(timeout=60)

    slots = app.hf.schedules.slots("beat", last=1000, next=0)
    assert {later.scheduled_for - earlier.scheduled_for for earlier, later in pairwise(slots)} == {timedelta(seconds=1)}
    started = Counter(line.split()[0] for line in lines(tmp_path))
    assert set(started.values()) == {1}, "a slot was started twice"
    ran = [slot for slot in slots if slot.outcome == "ran"]
    assert {slot.scheduled_for.isoformat() for slot in ran} <= set(started)
    # A run of the killed worker may have failed, and runs that no worker has started are still queued.
    left = [slot.outcome for slot in slots if slot.outcome != "ran"]
    assert set(left) <= {"failed", "queued"}
    assert left.count("failed") <= 1
    assert len({slot.run_id for slot in slots}) == len(slots)
    assert app.hf.verify() == []


def lines(folder: Path) -> list[str]:
    file = folder / "slots.txt"
    return file.read_text().splitlines() if file.exists() else []
