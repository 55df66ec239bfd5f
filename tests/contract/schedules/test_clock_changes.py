"""Clock changes: jumps and daylight saving duplicate no slot and leave none without an outcome."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.contract.helpers.schedules import DAY, HOUR, QUARTER, START, scheduled, slot_lines
from tests.listing import runs_of

from holdfast import Holdfast
from holdfast.orchestrator.schedule import Scheduler
from holdfast.testing import FakeClock, Manual


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.contract("J5", "J10")
def test_a_clock_that_jumps_forward_leaves_no_slot_without_an_outcome(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    clock.jump(HOUR)
    manual.run_all()
    assert slot_lines(hf) == ["00:15 missed", "00:30 missed", "00:45 missed", "01:00 ran"]


@pytest.mark.contract("J3", "J5")
@pytest.mark.parametrize(
    ("jump", "claimed"),
    [
        (timedelta(seconds=20), ["00:30", "00:45", "01:00", "01:15", "01:30"]),
        (HOUR, ["01:30"]),  # earlier slots were decided while the clock was ahead
        (400 * DAY, ["00:30", "00:45", "01:00", "01:15", "01:30"]),  # earlier slots were only summarised in an event
    ],
)
def test_a_clock_that_is_set_back_duplicates_no_slot_and_stops_no_schedule(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any, jump: timedelta, claimed: list[str]
) -> None:
    clock.advance(QUARTER)
    manual.run_all()
    clock.jump(jump)
    manual.run_all()
    clock.jump(-jump)
    before = {slot.scheduled_for for slot in hf.schedules.slots("ingest", last=2000, next=0)}

    for _ in range(5):
        clock.advance(QUARTER)
        manual.run_all()

    slots = hf.schedules.slots("ingest", last=2000, next=0)
    assert [f"{slot.scheduled_for:%H:%M}" for slot in slots if slot.scheduled_for not in before] == claimed
    assert [slot.outcome for slot in slots if slot.scheduled_for not in before] == ["ran"] * len(claimed)
    runs = [slot.run_id for slot in slots if slot.run_id is not None]
    assert len(set(runs)) == len(runs) == len(runs_of(hf))
    assert hf.verify() == []


@pytest.mark.contract("J5")
def test_a_process_whose_clock_was_far_ahead_continues_in_the_present(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    """The process keeps the time of its next evaluation in memory; that time is set back with the clock."""
    table = Scheduler(hf.store, hf.scheduled, holder="manual")
    clock.jump(400 * DAY)
    table.keep(clock.now())
    clock.jump(-400 * DAY)
    table.keep(clock.now())
    clock.advance(QUARTER)
    assert table.keep(clock.now()) == 1


@pytest.mark.contract("J5")
@pytest.mark.parametrize(
    ("tz", "when", "midnight", "expected"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-03-29", ["01:00"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25", ["00:30"]),
        ("Europe/Berlin", "0 */1 * * *", "2026-10-25", [f"{hour:02}:00" for hour in range(8)]),
        ("America/New_York", "0 3 * * *", "2026-03-08", ["07:00"]),
        ("Australia/Lord_Howe", "*/30 2 * * *", "2026-04-04", ["15:30", "16:00"]),
    ],
)
def test_slots_are_correct_on_the_day_of_a_clock_change(
    hf: Holdfast, manual: Manual, clock: FakeClock, tz: str, when: str, midnight: str, expected: list[str]
) -> None:
    clock.jump(at(midnight) - QUARTER - clock.now())
    scheduled(hf, manual, when, tz=tz)
    for _ in range(96 if tz.startswith("Aus") else 32):
        clock.advance(QUARTER)
        manual.run_all()
    assert slot_lines(hf, last=200) == [f"{slot} ran" for slot in expected]


@pytest.mark.contract("J3")
def test_jitter_delays_the_run_of_a_slot_by_a_reproducible_amount(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    job = scheduled(hf, manual, jitter=600, overlap="wait")
    known = hf.scheduled[job.name]
    delays = {known.starts_at(START + number * QUARTER) - (START + number * QUARTER) for number in range(50)}
    assert len(delays) == 50
    assert all(timedelta(0) <= delay < timedelta(seconds=600) for delay in delays)

    clock.advance(QUARTER)
    assert manual.run_all() == 0
    [slot] = hf.schedules.slots("ingest", next=0)
    assert hf.snapshot(slot.run_id or "").due_at == known.starts_at(START + QUARTER)
    clock.jump(known.starts_at(START + QUARTER) - clock.now())
    assert manual.run_all() == 1
