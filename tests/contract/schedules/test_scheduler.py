"""The scheduler: it wakes when a slot is due, works in batches, and survives a bad schedule."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any

import pytest
from tests.contract.helpers.schedules import QUARTER, START, scheduled

from holdfast import Holdfast
from holdfast.orchestrator.schedule import Scheduler
from holdfast.testing import FakeClock, Manual


def test_a_trigger_that_fails_stops_no_other_schedule(
    hf: Holdfast, manual: Manual, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
            raise RuntimeError("no calendar here")

    hf.schedule(Broken(), name="broken")(lambda: None)
    scheduled(hf, manual)
    clock.advance(QUARTER)
    assert manual.run_all() == 1
    assert "could not evaluate schedule broken" in caplog.text


def test_no_transaction_is_made_between_two_slots(
    hf: Holdfast, clock: FakeClock, manual: Manual, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduled(hf, manual)
    hf.schedule("0 4 * * *", name="nightly")(lambda: None)
    table = Scheduler(hf.store, hf.scheduled, holder="manual")
    table.keep(clock.now())
    assert table.next_at() == START + QUARTER
    done: list[datetime] = []
    do = hf.store.do

    def counted(verb: Any) -> Any:
        done.append(clock.now())
        return do(verb)

    monkeypatch.setattr(hf.store, "do", counted)

    for _ in range(29 * 60):
        clock.advance(1)
        table.keep(clock.now())

    assert done == [START + QUARTER]


@pytest.mark.contract("P9")
def test_many_schedules_due_at_once_are_processed_in_batches(hf: Holdfast, clock: FakeClock, manual: Manual) -> None:
    for number in range(120):
        hf.schedule(every=60, name=f"s{number:03}")(lambda: None)
    table = Scheduler(hf.store, hf.scheduled, holder="manual")
    assert (table.keep(clock.now()), table.keep(clock.now())) == (0, 0)
    clock.advance(60)
    assert [table.keep(clock.now()) for _ in range(3)] == [100, 20, 0]


@pytest.mark.contract("J3", "J5")
def test_a_worker_wakes_for_each_slot_and_not_only_at_its_poll_interval(url: str) -> None:
    """The slots are a second apart; the poll interval is longer than this test waits."""
    enough = threading.Event()
    slots: list[datetime] = []
    with Holdfast(url, poll_interval=100, lease=300) as engine:

        @engine.schedule(every=1)
        def beat(scheduled_for: datetime) -> None:
            slots.append(scheduled_for)
            if len(slots) == 3:
                enough.set()

        with engine.worker():
            assert enough.wait(60)
        assert engine.verify() == []
