"""Polling for results: how often a run is read while a caller waits for it."""

from __future__ import annotations

from holdfast.runs import result_waiter
from holdfast.runs.result_waiter import Watch


def test_polling_pauses_grow_to_a_quarter_of_a_second() -> None:
    watch, now, pauses = Watch("run", lambda answer: None, reads=False), 1000.0, list[float]()
    for _ in range(20_000):
        watch.look_later(now)
        pauses.append(watch.due - now)
        now = watch.due
    assert all(0 < pause <= 1.01 * result_waiter.FIRST for pause in pauses[:3])
    assert all(0.1 < pause <= 0.26 for pause in pauses[20:])


def test_runs_that_are_awaited_for_long_are_polled_together() -> None:
    watches = [Watch(str(number), lambda answer: None, reads=False) for number in range(100)]
    for number, watch in enumerate(watches):
        watch.due = 1000.0 + number / 100
        while watch.due < 1010:
            watch.look_later(watch.due)
    next_reads = {watch.due for watch in watches}
    assert len(next_reads) <= 3
