"""A killed bulk operation continues on the next worker and runs each run again once."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.process.support import WorkerProcess
from tests.waiting import wait_for

from holdfast import RunFilter


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_bulk_operation_runs_each_run_again_once(
    load: Callable[..., Any],
    request: pytest.FixtureRequest,
    start_worker: Callable[..., WorkerProcess],
    kind: str,
) -> None:
    app = load("marking_jobs", request.getfixturevalue(f"{kind}_url"))
    hf = app.hf
    runs = app.work.using(queue="elsewhere").submit_many([{"number": number} for number in range(600)])
    victim = start_worker("marking_jobs").ready()
    ours = RunFilter(queue="elsewhere")
    cancelled = hf.bulk.cancel(ours, by="ann").result(timeout=60)
    assert cancelled == {"matched": 600, "done": 600, "skipped": 0}

    bulk = hf.bulk.again(ours, by="ann")
    wait_for(lambda: hf.counts(ours)["queued"].number >= 100)
    victim.signal(signal.SIGKILL)
    victim.process.wait()
    assert not hf.snapshot(bulk.id).ended, "the worker must be killed in the middle"
    start_worker("marking_jobs").ready()

    assert bulk.result(timeout=60) == {"matched": 600, "done": 600, "skipped": 0}
    assert hf.snapshot(bulk.id).takeovers == 1
    again: Counter[str] = Counter()
    after = None
    while True:
        page = hf.search(RunFilter(queue="elsewhere", state="queued"), limit=500, after=after)
        again.update(run.again_of for run in page.items)
        if (after := page.next) is None:
            break
    assert again == dict.fromkeys([run.id for run in runs], 1)
    assert hf.verify() == []
