"""Slot claims: a slot has one run that is claimed and started once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.schedules import QUARTER, START, OtherProcess, scheduled, slot_lines

from holdfast import Holdfast, WorkerExists
from holdfast.orchestrator import schedule
from holdfast.orchestrator.schedule import Scheduler
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("J3", "J5", "J8")
def test_a_due_slot_has_one_run_that_knows_its_scheduled_time(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    clock.advance(QUARTER + timedelta(seconds=7.5))

    assert manual.run_all() == 1
    assert manual.run_all() == 0, "the slot must not run twice"

    [slot] = hf.schedules.slots("ingest", next=0)
    assert slot.run_id is not None
    run = hf.get(slot.run_id)
    assert (slot.scheduled_for, slot.outcome, slot.manual) == (START + QUARTER, "ran", False)
    assert (run.snapshot.kind, run.snapshot.keep_forever, run.result(timeout=0)) == (
        "slot",
        True,
        "2026-01-01T00:15:00+00:00",
    )
    assert slot.claimed_at == run.snapshot.created_at == clock.now()
    assert hf.verify() == []


@pytest.mark.contract("J3")
def test_eight_schedulers_at_once_create_one_run_for_each_slot(
    url: str, hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    """Eight engines without a leader evaluate the same slots at the same moment."""
    scheduled(hf, manual, overlap="wait")
    with ExitStack() as opened:
        tables = [opened.enter_context(OtherProcess(url, clock, number)) for number in range(8)]
        barrier = threading.Barrier(8)
        for _ in range(6):
            clock.advance(QUARTER)
            with ThreadPoolExecutor(8) as pool:
                decided = list(pool.map(lambda table: (barrier.wait(), table.keep(clock.now()))[1], tables))
            assert sum(decided) == 1

    claimed = database.all("select slot_at, run_id from holdfast_slots where state = 'claimed'")
    assert len({slot_at for slot_at, _ in claimed}) == len({run_id for _, run_id in claimed}) == 6
    assert database.all("select count(*) from holdfast_runs") == [(6,)]
    assert hf.verify() == []


@pytest.mark.contract("J3", "S3")
def test_a_scheduler_that_crashes_midway_loses_no_slot(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, ingest: Any
) -> None:
    class Killed(Exception):
        pass

    def die(tx: Any) -> None:
        assert schedule.evaluate(tx, hf.scheduled["ingest"], holder="manual", take_over=False).slots == 1
        raise Killed

    clock.advance(QUARTER)
    with pytest.raises(Killed):
        hf.do(die)
    assert (database.count("slots"), database.count("runs")) == (0, 0)

    assert manual.run_all() == 1
    assert slot_lines(hf) == ["00:15 ran"]


@pytest.mark.contract("J3", "L7")
def test_the_run_of_a_slot_is_never_started_twice(hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any) -> None:
    """Its worker is lost during the run, which therefore fails and is not retried."""
    clock.advance(QUARTER)
    manual.orchestrate()
    assert len(manual.worker("lost").claim()) == 1

    clock.advance(3 * hf.settings.lease)
    manual.orchestrate()

    assert manual.worker().claim() == []
    [slot] = hf.schedules.slots("ingest", next=0)
    assert (slot.outcome, slot.holder) == ("failed", "lost")
    assert hf.snapshot(slot.run_id or "").failure_type == "PROCESS_TERMINATED"


@pytest.mark.contract("J2", "J3")
def test_a_worker_that_lost_its_exclusive_name_schedules_nothing(
    hf: Holdfast, clock: FakeClock, manual: Manual
) -> None:
    """The transaction that claims a slot checks that the worker still has its name."""
    scheduled(hf, manual)
    clock.advance(QUARTER)
    unregistered = hf.worker(exclusive="ingesting")
    table = Scheduler(hf.store, hf.scheduled, holder="manual", guard=unregistered._guard)
    with pytest.raises(WorkerExists):
        table.keep(clock.now())
    assert slot_lines(hf) == []


@pytest.mark.contract("J3", "S5")
def test_a_worker_that_shuts_down_during_a_slot_fails_its_run(live: Holdfast) -> None:
    began = threading.Event()

    @live.schedule(every=1, name="ingest", timeout=60)
    def endless() -> None:
        began.set()
        threading.Event().wait(10)

    worker = live.worker()
    worker.start()
    assert began.wait(60)
    worker.stop(grace=timedelta(0))

    first = next(slot for slot in live.schedules.slots("ingest", next=0) if slot.run_id is not None)
    assert first.outcome == "failed"
    assert first.error is not None
    assert "the worker shut down" in first.error
