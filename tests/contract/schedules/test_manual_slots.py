"""Manual slots: a slot can be triggered before or after its time, and still has one run."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.schedules import (
    DAY,
    HOUR,
    QUARTER,
    START,
    OtherProcess,
    scheduled,
    trigger_from_eight_threads,
)

from holdfast import Holdfast, InvalidPolicy, NoWorker, SlotTaken
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("J3", "J11")
def test_a_manually_triggered_slot_is_not_claimed_again_when_it_is_due(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    run = hf.schedules.trigger("ingest", scheduled_for=START + QUARTER)
    manual.run_all()
    clock.advance(QUARTER)

    assert manual.run_all() == 0

    [slot] = hf.schedules.slots("ingest", next=0)
    assert (slot.run_id, slot.outcome, slot.manual) == (run.id, "ran", True)


@pytest.mark.contract("J11")
def test_triggering_a_taken_slot_is_refused_with_its_run_and_changes_nothing(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, ingest: Any
) -> None:
    clock.advance(HOUR)
    manual.run_all()
    slots = hf.schedules.slots("ingest", next=0)
    before = database.counts() | {"slots": database.count("slots")}

    with pytest.raises(SlotTaken, match=f"run {slots[-1].run_id}") as taken:
        hf.schedules.trigger("ingest", scheduled_for=slots[-1].scheduled_for)
    assert (taken.value.run_id, taken.value.code) == (slots[-1].run_id, "slot_taken")
    with pytest.raises(SlotTaken, match="missed"):
        hf.schedules.trigger("ingest", scheduled_for=slots[0].scheduled_for)

    assert database.counts() | {"slots": database.count("slots")} == before


@pytest.mark.contract("J3", "J11")
def test_of_several_triggers_and_schedulers_only_one_gets_a_slot(
    url: str, hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    scheduled(hf, manual, overlap="wait")
    for number in range(1, 7):
        clock.advance(QUARTER)
        slot_at = START + number * QUARTER
        barrier = threading.Barrier(6)

        def by_hand(slot_at: datetime = slot_at, barrier: threading.Barrier = barrier) -> int:
            barrier.wait()
            try:
                hf.schedules.trigger("ingest", scheduled_for=slot_at)
            except SlotTaken:
                return 0
            return 1

        with OtherProcess(url, clock) as table, ThreadPoolExecutor(6) as pool:
            hands = [pool.submit(by_hand) for _ in range(5)]
            barrier.wait()
            by_clock = table.keep(clock.now())
            assert sum(hand.result() for hand in hands) + by_clock == 1
    assert database.count("runs") == database.count("slots") == 6
    assert hf.verify() == []


@pytest.mark.contract("J7", "J11")
def test_of_eight_simultaneous_triggers_only_one_passes_the_overlap_policy(hf: Holdfast, manual: Manual) -> None:
    scheduled(hf, manual)
    assert trigger_from_eight_threads(hf) == 1


@pytest.mark.contract("J11")
def test_a_process_without_the_code_can_trigger_the_same_run(
    url: str, hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, timeout=77)
    with Holdfast(url, clock=clock) as bare:
        run = bare.schedules.trigger("ingest", scheduled_for=START - DAY)
        [standing] = bare.schedules.list()
        assert standing.next_at == START + QUARTER
        assert [slot.outcome for slot in bare.schedules.slots("ingest", next=2)] == ["queued", "upcoming", "upcoming"]
    assert (run.snapshot.queue, run.snapshot.key, run.snapshot.policy.timeout) == (
        "default",
        "schedule:ingest",
        timedelta(seconds=77),
    )
    manual.run_all()
    assert hf.get(run.id).result(timeout=0) == "2025-12-31T00:00:00+00:00"


@pytest.mark.contract("J1", "J11")
def test_a_process_without_a_worker_stores_its_schedules_and_claims_no_slot(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    """A web process may use a schedule before any worker has started, but it never claims a slot."""
    hf.schedule("*/15 * * * *", name="ingest")(lambda: None)
    hf.schedules.pause("ingest", note="not yet")
    hf.schedules.resume("ingest")
    with pytest.raises(NoWorker):
        hf.schedules.trigger("ingest", scheduled_for=START)
    clock.advance(DAY)
    assert (hf.schedules.list()[0].evaluated_at, database.count("slots")) == (START, 0)


@pytest.mark.contract("J11", "J4")
def test_a_slot_is_triggered_only_if_a_live_worker_would_run_it_and_names_that_worker(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    hf.schedule("*/15 * * * *", name="ingest", queue="slow")(lambda: None)
    manual.schedule()
    hour = timedelta(hours=1)
    for name, queues, jobs in (("fast", ["default"], None), ("other", ["slow"], ["another"])):
        manual.worker(name, queues=queues, jobs=jobs).register(live_for=hour)
        with pytest.raises(NoWorker, match="no live worker serves queue slow") as refused:
            hf.schedules.trigger("ingest", scheduled_for=START)
        assert refused.value.code == "no_worker"
    assert database.count("slots") == database.count("runs") == 0, "a refused trigger must write nothing"

    manual.worker("slow", queues=["slow"]).register(live_for=hour)
    hf.schedules.trigger("ingest", scheduled_for=START)
    assert claimants(database) == ["slow"]

    clock.advance(hour)
    with pytest.raises(NoWorker, match="no worker is alive"):
        hf.schedules.trigger("ingest", scheduled_for=START + DAY)


@pytest.mark.contract("J3", "J4")
def test_a_slot_claimed_on_schedule_names_its_worker(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, ingest: Any
) -> None:
    clock.advance(QUARTER)
    manual.schedule()
    assert claimants(database) == ["manual"]


def claimants(database: Database) -> list[str]:
    return [row[0] for row in database.all("select claimed_by from holdfast_slot_view where run_id is not null")]


@pytest.mark.contract("S4", "J11")
@pytest.mark.parametrize(
    "bad",
    [
        datetime(2026, 1, 1),  # noqa: DTZ001 - the missing time zone is the error
        "2026-01-01",
        None,
        datetime(1969, 12, 31, tzinfo=UTC),
        datetime(2032, 1, 1, tzinfo=UTC),
    ],
)
def test_a_time_that_is_no_slot_is_refused(hf: Holdfast, database: Database, ingest: Any, bad: Any) -> None:
    with pytest.raises(InvalidPolicy, match="scheduled_for must be"):
        hf.schedules.trigger("ingest", scheduled_for=bad)
    assert database.count("slots") == database.count("runs") == 0
