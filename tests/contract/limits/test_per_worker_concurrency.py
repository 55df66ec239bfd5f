"""The concurrency of a queue per worker."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from holdfast import Holdfast


class Meter:
    """Records the largest number of simultaneous calls by name; the calls wait for each other at a barrier."""

    def __init__(self) -> None:
        self.most: Counter[str] = Counter()
        self._inside: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, name: str, meeting: threading.Barrier) -> None:
        with self._lock:
            self._inside[name] += 1
            self.most[name] = max(self.most[name], self._inside[name])
        meeting.wait(timeout=60)
        with self._lock:
            self._inside[name] -= 1


@pytest.mark.contract("Q9")
def test_each_worker_runs_at_most_its_share_of_a_queue(live: Holdfast) -> None:
    meter, meeting = Meter(), threading.Barrier(4)
    live.queue("renderings", per_worker=2)

    @live.job(name="render", queue="renderings")
    def render(number: int) -> None:
        meter("renderings", meeting)  # continues only when four runs are in progress

    with (
        live.worker(queues=["renderings"], concurrency=8) as one,
        live.worker(queues=["renderings"], concurrency=8) as two,
    ):
        runs = render.submit_many([{"number": number} for number in range(40)])
        for run in runs:
            run.result(timeout=60)

    assert meter.most == {"renderings": 4}
    assert one.claimed + two.claimed == 40


@pytest.mark.contract("Q8", "Q9")
def test_a_queue_at_its_share_leaves_the_remaining_concurrency_free(live: Holdfast) -> None:
    release = threading.Event()
    live.queue("slow", per_worker=1)

    @live.job(name="hold", queue="slow")
    def hold() -> None:
        release.wait(60)

    @live.job(name="quick", queue="others")
    def quick() -> str:
        return "done"

    with live.worker(queues=["slow", "others"], concurrency=2):
        held = hold.submit_many([{}] * 3)
        assert quick.submit().result(timeout=60) == "done"
        assert Counter(run.refresh().state for run in held) == {"running": 1, "queued": 2}
        release.set()
        for run in held:
            run.result(timeout=60)
