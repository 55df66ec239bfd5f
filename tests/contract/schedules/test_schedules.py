"""Schedules: declarations are checked, and every slot shows its outcome."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.schedules import DAY, HOUR, QUARTER, START, scheduled, slot_lines

from holdfast import Holdfast, Slot
from holdfast.runs.outcomes import Failed
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("J8")
def test_a_slot_shows_the_outcome_of_its_run(hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any) -> None:
    worker = manual.worker("w")
    clock.advance(QUARTER)
    manual.orchestrate()
    assert slot_lines(hf) == ["00:15 queued"]
    [claim] = worker.claim()
    assert slot_lines(hf) == ["00:15 running"]
    worker.finish(claim, Failed("ERROR", "no feed"))
    [slot] = hf.schedules.slots("ingest", next=0)
    assert (slot.outcome, slot.error, slot.holder, slot.finished_at) == ("failed", "no feed", "w", clock.now())

    clock.advance(QUARTER)
    manual.orchestrate()
    hf.cancel(hf.schedules.slots("ingest", next=0)[-1].run_id or "")
    assert slot_lines(hf) == ["00:15 failed", "00:30 cancelled"]


@pytest.mark.contract("J3", "J7")
def test_why_names_the_slot_and_the_earlier_one_that_still_runs(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    scheduled(hf, manual, overlap="wait", timeout=DAY)
    clock.advance(QUARTER)
    manual.orchestrate()
    [first] = manual.worker("w").claim()
    second = hf.schedules.trigger("ingest", scheduled_for=START + DAY)
    manual.promote()

    assert hf.why(first.lease.run_id).reasons[-1] == "it is slot 2026-01-01T00:15:00Z of schedule ingest"
    assert hf.why(second.id).reasons[-2:] == (
        "it is slot 2026-01-02T00:00:00Z of schedule ingest, triggered by hand",
        f"slot 2026-01-01T00:15:00Z (run {first.lease.run_id}) has not ended; the schedule limits how many runs "
        "of ingest run at once",
    )


def test_the_last_and_next_slots_can_be_listed(hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any) -> None:
    for _ in range(5):
        clock.advance(QUARTER)
        manual.run_all()
    assert slot_lines(hf, last=2, next=3) == [
        "01:00 ran",
        "01:15 ran",
        "01:30 upcoming",
        "01:45 upcoming",
        "02:00 upcoming",
    ]
    assert slot_lines(hf, last=0, next=1) == ["01:30 upcoming"]
    assert all(isinstance(slot, Slot) for slot in hf.schedules.slots("ingest"))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("delete from holdfast_slots where state = 'claimed'", "run_without_slot"),
        ("update holdfast_slots set run_id = 'nobody' where state = 'claimed'", "slot_without_run"),
        ("update holdfast_slots set run_id = null where state = 'claimed'", "slot_without_run"),
        ("update holdfast_slots set coalesced_at = slot_at where state = 'coalesced'", None),
        ("delete from holdfast_slots where state = 'claimed'", "slot_into_nothing"),
    ],
)
def test_verify_finds_slots_that_contradict_their_runs(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, damage: str, problem: str | None
) -> None:
    scheduled(hf, manual, misfire_grace=HOUR)
    clock.advance(HOUR)
    manual.run_all()
    assert hf.verify() == []
    database.run(damage)
    found = {finding.problem for finding in hf.verify()}
    assert problem in found if problem else found == set()


@pytest.mark.contract("J3", "J10")
def test_an_existing_job_can_be_scheduled(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.schedule(every=60)
    @hf.job(name="ingest", queue="slow", priority=3, timeout=30, max_attempts=5, on_crash="requeue")
    def ingest(limit: int = 10) -> int:
        return limit

    manual.schedule()
    clock.advance(60)
    manual.run_all()

    [slot] = hf.schedules.slots("ingest", next=0)
    run = hf.get(slot.run_id or "")
    assert (run.result(timeout=0), run.snapshot.queue, run.snapshot.priority) == (10, "slow", 3)
    policy = run.snapshot.policy
    assert (policy.max_attempts, policy.on_crash, policy.on_shutdown, policy.keep_forever) == (1, "fail", "fail", True)
    assert policy.timeout == timedelta(seconds=30)


def test_the_defaults_of_a_schedule_are_the_documented_ones(hf: Holdfast) -> None:
    hf.schedule(every=60, name="plain")(lambda: None)
    plain = hf.scheduled["plain"]
    assert (plain.coalesce, plain.misfire_grace, plain.max_instances) == (True, timedelta(seconds=300), 1)
    assert (plain.catch_up, plain.overlap, plain.jitter) == ("none", "skip", None)
