"""Late slots, after a pause or downtime, run or don't run as the policy of their schedule says."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.schedules import DAY, HOUR, QUARTER, START, scheduled, slot_lines

from holdfast import Holdfast
from holdfast.orchestrator.loop import Orchestrator, Pulse
from holdfast.orchestrator.schedule import Scheduler
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database

FLAGS = (
    "ready",
    "unchecked",
    "open_key_locks",
    "dependencies",
    "pending_actions",
    "child_cancellations",
    "cancels",
    "drains",
)
PULSE = Pulse(**dict.fromkeys(FLAGS, False), expires_at=None, due_at=None, clock_at=None)


@pytest.mark.contract("J10")
@pytest.mark.parametrize(
    ("options", "late", "expected"),
    [
        ({}, timedelta(minutes=47), ["00:15 missed", "00:30 missed", "00:45 ran"]),
        ({}, timedelta(minutes=55), ["00:15 missed", "00:30 missed", "00:45 missed"]),
        ({"misfire_grace": HOUR}, timedelta(minutes=47), ["00:15 coalesced", "00:30 coalesced", "00:45 ran"]),
        ({"misfire_grace": HOUR, "coalesce": False}, timedelta(minutes=47), ["00:15 ran", "00:30 ran", "00:45 ran"]),
        ({"misfire_grace": None}, timedelta(minutes=47), ["00:15 coalesced", "00:30 coalesced", "00:45 ran"]),
        ({"catch_up": "latest"}, timedelta(minutes=55), ["00:15 missed", "00:30 missed", "00:45 ran"]),
        ({"catch_up": 30 * 60}, timedelta(minutes=55), ["00:15 missed", "00:30 ran", "00:45 ran"]),
        (
            {"catch_up": HOUR, "coalesce": True},
            timedelta(minutes=55),
            ["00:15 coalesced", "00:30 coalesced", "00:45 ran"],
        ),
    ],
)
def test_late_slots_follow_the_policy_of_the_schedule(
    hf: Holdfast,
    manual: Manual,
    clock: FakeClock,
    options: dict[str, Any],
    late: timedelta,
    expected: list[str],
) -> None:
    scheduled(hf, manual, **options)
    clock.advance(late)
    manual.run_all()
    assert slot_lines(hf) == expected


@pytest.mark.contract("J10")
def test_slots_during_a_pause_are_late_slots(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, ingest: Any
) -> None:
    hf.schedules.pause("ingest", note="the feed is down")
    clock.advance(31 * timedelta(minutes=1))
    assert manual.run_all() == 0
    assert database.count("slots") == 0
    [standing] = hf.schedules.list()
    assert (standing.paused_at, standing.note, standing.next_at) == (START, "the feed is down", None)

    hf.schedules.resume("ingest")
    manual.run_all()

    assert slot_lines(hf) == ["00:15 missed", "00:30 ran"]
    assert hf.schedules.list()[0].paused_at is None


@pytest.mark.contract("J10")
def test_after_a_year_of_downtime_the_work_is_bounded_and_missed_slots_are_recorded(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    scheduled(hf, manual, "* * * * *", catch_up="latest")
    clock.advance(365 * DAY + timedelta(minutes=10, seconds=1))

    assert manual.schedule() == 1000

    assert database.all("select state, count(*) from holdfast_slots group by state order by state") == [
        ("claimed", 1),
        ("coalesced", 4),
        ("missed", 995),
    ]
    [(data,)] = database.all("select data from holdfast_events where kind = 'SLOTS_MISSED'")
    assert '"after":"2026-01-01T00:00:00+00:00"' in data
    assert manual.run_all() == 1


@pytest.mark.contract("J10")
def test_resuming_a_schedule_wakes_the_scheduler_at_once(hf: Holdfast, clock: FakeClock, manual: Manual) -> None:
    scheduled(hf, manual, catch_up="latest")
    table = Scheduler(hf.store, hf.scheduled, holder="manual")
    orchestrator = Orchestrator(hf.store, hf.settings, clock, poll=lambda: PULSE, scheduler=table)
    leave = hf.notifier.listen(orchestrator.on_commit)
    hf.schedules.pause("ingest")
    clock.advance(QUARTER + timedelta(minutes=10))
    orchestrator.tick()
    assert slot_lines(hf) == []

    hf.schedules.resume("ingest")

    assert orchestrator.signal.wait(0)
    assert 0 < orchestrator.tick() <= 1
    assert slot_lines(hf) == ["00:15 queued"]
    leave()
