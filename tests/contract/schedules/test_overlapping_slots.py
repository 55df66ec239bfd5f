"""Overlapping slots are skipped, wait, or cancel the previous run."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.schedules import DAY, HOUR, QUARTER, START, scheduled, slot_lines

from holdfast import Holdfast, QueueFull, StillRunning
from holdfast.runs.outcomes import Failed
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("J7")
def test_a_slot_is_skipped_with_a_reason_while_an_earlier_run_has_not_ended(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, timeout=2 * HOUR)
    clock.advance(QUARTER)
    manual.orchestrate()
    worker = manual.worker("busy")
    [claim] = worker.claim()
    keep(worker, claim, clock, QUARTER)
    assert manual.run_all() == 0
    worker.finish(claim)
    clock.advance(QUARTER)
    manual.run_all()

    assert slot_lines(hf) == ["00:15 ran", "00:30 skipped", "00:45 ran"]
    skipped = hf.schedules.slots("ingest", next=0)[1]
    assert skipped.reason == f"run {claim.lease.run_id} of slot 2026-01-01T00:15:00Z has not ended (on busy)"


def keep(worker: Any, claim: Any, clock: FakeClock, for_: timedelta) -> None:
    """Let time pass while the worker keeps renewing its lease."""
    step = timedelta(seconds=5)
    for _ in range(int(for_ / step)):
        clock.advance(step)
        worker.renew(claim)


@pytest.mark.contract("J7")
@pytest.mark.parametrize("instances", [1, 2])
def test_waiting_slot_runs_never_overlap_beyond_max_instances(
    hf: Holdfast, manual: Manual, clock: FakeClock, instances: int
) -> None:
    scheduled(hf, manual, overlap="wait", max_instances=instances, timeout=DAY)
    worker = manual.worker()
    for _ in range(3):
        clock.advance(QUARTER)
        manual.schedule()
    manual.promote()

    claims = worker.claim(limit=9)

    assert len(claims) == instances
    assert slot_lines(hf) == ["00:15 running", "00:30 queued" if instances == 1 else "00:30 running", "00:45 queued"]
    while claims:
        assert len(claims) <= instances
        for claim in claims:
            worker.finish(claim)
        manual.promote()
        claims = worker.claim(limit=9)
    assert slot_lines(hf) == ["00:15 ran", "00:30 ran", "00:45 ran"]


@pytest.mark.contract("J7", "J10")
def test_a_slot_is_skipped_only_when_max_instances_runs_have_not_ended(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, max_instances=2, timeout=DAY)
    for _ in range(3):
        clock.advance(QUARTER)
        manual.schedule()
    manual.promote()
    assert len(manual.worker().claim(limit=9)) == 2
    assert slot_lines(hf) == ["00:15 running", "00:30 running", "00:45 skipped"]


@pytest.mark.contract("J7")
def test_a_slot_may_cancel_the_previous_run_and_starts_after_it_has_stopped(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, overlap="cancel", timeout=DAY)
    clock.advance(QUARTER)
    manual.orchestrate()
    worker = manual.worker()
    [first] = worker.claim()
    clock.advance(QUARTER)
    manual.schedule()
    assert worker.renew(first).cancelled
    manual.promote()
    assert worker.claim() == [], "the previous run has not stopped yet"

    clock.advance(QUARTER)
    manual.schedule()  # the run of 00:30 has not started yet
    worker.finish(first, Failed("ERROR", "stopped"))
    manual.run_all()

    assert slot_lines(hf) == ["00:15 failed", "00:30 cancelled", "00:45 ran"]


@pytest.mark.contract("J7")
def test_a_refused_slot_cancels_no_run(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    hf.queues.limit("slow", max_queued=1)
    scheduled(hf, manual, overlap="cancel", timeout=DAY, queue="slow")
    clock.advance(QUARTER)
    manual.schedule()
    worker = manual.worker(queues=["slow"])
    [first] = worker.claim()
    keep(worker, first, clock, QUARTER)
    manual.schedule()
    assert slot_lines(hf) == ["00:15 running", "00:30 skipped"]
    assert hf.snapshot(first.lease.run_id).cancel_requested_at is None


@pytest.mark.contract("J7")
def test_a_manually_submitted_run_does_not_overlap_either(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    ingest.submit(scheduled_for=START)
    [claim] = manual.worker().claim()
    ingest.submit(scheduled_for=START)
    manual.promote()
    assert manual.worker().claim() == []

    clock.advance(timedelta(seconds=5))
    with pytest.raises(StillRunning):
        hf.schedules.trigger("ingest", scheduled_for=START)
    assert claim.lease.entry.key == "schedule:ingest"


@pytest.mark.contract("J3", "S4")
def test_a_slot_whose_queue_is_full_is_skipped_with_a_reason(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    hf.queues.limit("slow", max_queued=1)
    filler = hf.job(name="filler", queue="slow")(lambda: None).submit()
    scheduled(hf, manual, queue="slow")
    clock.advance(QUARTER)
    manual.schedule()

    [slot] = hf.schedules.slots("ingest", next=0)
    assert (slot.outcome, slot.run_id) == ("skipped", None)
    assert slot.reason is not None
    assert "the limit is 1" in slot.reason
    with pytest.raises(QueueFull):
        hf.schedules.trigger("ingest", scheduled_for=START)
    assert (database.count("slots"), database.count("runs")) == (1, 1)
    assert hf.verify() == []
    hf.cancel(filler.id)
    clock.advance(QUARTER)
    manual.run_all()
    assert slot_lines(hf) == ["00:15 skipped", "00:30 ran"]


@pytest.mark.contract("J6")
def test_after_the_timeout_of_a_run_on_a_lost_worker_the_next_slot_runs(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, expected_runtime=300)
    clock.advance(QUARTER)
    manual.orchestrate()
    [claim] = manual.worker("gone").claim()
    assert claim.policy.timeout == timedelta(seconds=600), "the timeout must be twice the expected runtime"

    clock.advance(QUARTER)
    assert manual.schedule() == 1, "a run past its timeout must not prevent the next slot from being claimed"
    assert slot_lines(hf) == ["00:15 running", "00:30 queued"]
    assert manual.worker().claim() == [], "the run of that slot must wait until the other has ended"
    manual.run_all()

    assert slot_lines(hf) == ["00:15 skipped_timeout", "00:30 ran"]
    assert hf.schedules.slots("ingest", next=0)[0].finished_at == clock.now()


@pytest.mark.contract("J6", "J7")
def test_a_run_past_its_timeout_on_a_live_worker_is_never_overlapped(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    """Its worker stops it at its deadline; the next run must not start before its lease has expired."""
    scheduled(hf, manual, timeout=880)
    clock.advance(QUARTER)
    manual.orchestrate()
    worker = manual.worker("late")
    [claim] = worker.claim()
    keep(worker, claim, clock, timedelta(seconds=885))
    assert claim.lease.deadline_at is not None
    assert claim.lease.deadline_at < clock.now()

    clock.advance(timedelta(seconds=4))
    manual.orchestrate()
    assert hf.snapshot(claim.lease.run_id).state == "running"
    clock.advance(timedelta(seconds=11))
    manual.run_all()
    assert slot_lines(hf) == ["00:15 skipped_timeout", "00:30 ran"]
