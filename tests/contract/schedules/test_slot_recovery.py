"""Slot recovery: a starting worker fails the claimed slots of a lost worker."""

from __future__ import annotations

import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.waiting import PATIENCE
from tests.waiting import wait_for

from holdfast import Context, Holdfast, Job
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.fixtures import Database

SLOT = datetime(2026, 1, 1, tzinfo=UTC)
PRIOR, STRANGER = "host:1:scheduler:0123456789", "host:1:another:0123456789"


def claimed(hf: Holdfast, claimant: str, *, started: bool) -> str:
    """Let a worker claim a slot and disappear; return the id of the slot's run."""
    hf.schedule(every=86_400 * 365, name="ingest")(lambda: None)
    manual = Manual(hf)
    manual.schedule()
    worker = manual.worker(claimant)
    worker.register()
    run_id = hf.schedules.trigger("ingest", scheduled_for=SLOT).id
    hf.do(lambda tx: tx.put("delete_worker", id=claimant))
    assert len(worker.claim() if started else []) == int(started)
    return run_id


@pytest.mark.contract("J9", "J3")
@pytest.mark.parametrize("started", [False, True], ids=["never started", "started"])
@pytest.mark.parametrize(
    ("claimant", "options"),
    [(PRIOR, {}), (STRANGER, {"unknown": "fail"})],
    ids=["prior instance", "unknown instance"],
)
def test_a_slot_of_a_lost_worker_fails_at_the_next_start_and_does_not_run(
    url: str, claimant: str, options: dict[str, Any], started: bool
) -> None:
    with Holdfast(url, poll_interval=0.1, lease=1) as hf:
        run_id = claimed(hf, claimant, started=started)
        with hf.worker(exclusive="scheduler", **options):
            seen = hf.snapshot(run_id)
            assert (seen.state, seen.failure_type) == ("failed", "PROCESS_TERMINATED"), (
                "the run must have failed before start returns"
            )
            assert seen.error == "worker_startup_recovery"
            hf.job(name="after")(lambda: None).submit().result(PATIENCE)
        assert [slot.outcome for slot in hf.schedules.slots("ingest", next=0)] == ["failed"]
        assert hf.snapshot(run_id).attempt == int(started)
        counted = {counter.name: counter.value for counter in hf.statistics.counters()}
        assert counted["startup_takeover"] == 1
        assert hf.verify() == []


@pytest.mark.contract("J9")
def test_a_slot_of_an_unknown_worker_runs_if_the_policy_allows_it(url: str) -> None:
    with Holdfast(url, poll_interval=0.1, lease=1) as hf:
        run_id = claimed(hf, STRANGER, started=False)
        with hf.worker(exclusive="scheduler"):
            hf.get(run_id).result(PATIENCE)


@pytest.mark.contract("J9", "J3")
def test_a_slot_of_a_live_worker_is_not_touched(url: str) -> None:
    with Holdfast(url, poll_interval=0.1, lease=1) as hf, ExitStack() as stack:
        run_id = claimed(hf, STRANGER, started=False)
        Manual(hf).worker(STRANGER, queues=["elsewhere"]).register()
        stack.enter_context(hf.worker(exclusive="scheduler", unknown="fail"))
        hf.get(run_id).result(PATIENCE)


@pytest.mark.contract("J9")
def test_a_slot_whose_run_waits_for_its_children_continues(url: str) -> None:
    """A run that waits for children has no lease, so nothing of it was lost with the worker."""
    with Holdfast(url, poll_interval=0.1, lease=1) as hf:
        child: Job[[], str] = hf.job(name="child", queue="later")(lambda: "done")

        @hf.schedule(every=86_400 * 365, name="ingest")
        def ingest(ctx: Context) -> str:
            [done] = ctx.gather(ctx.submit_child(child))
            return str(done)

        manual = Manual(hf)
        manual.schedule()
        prior = manual.worker(PRIOR)
        prior.register()
        run = hf.schedules.trigger("ingest", scheduled_for=SLOT)
        prior.work(prior.claim()[0])
        assert hf.snapshot(run.id).place == "waits"
        hf.do(lambda tx: tx.put("delete_worker", id=PRIOR))
        with hf.worker(exclusive="scheduler", queues=["default", "later"]):
            assert run.result(PATIENCE) == "done"


@pytest.mark.contract("J9")
def test_a_single_process_fails_every_slot_claimed_before_it_started(url: str) -> None:
    with Holdfast(url, poll_interval=0.1, lease=1) as hf:
        run_id = claimed(hf, STRANGER, started=False)
    with Holdfast(url, poll_interval=0.1, lease=1, single_process=True) as alone, alone.worker():
        assert alone.snapshot(run_id).error == "worker_startup_recovery"


@pytest.mark.contract("J1")
@pytest.mark.parametrize(
    ("setting", "option", "schedules"),
    [(True, None, True), (False, None, False), (False, True, True), (True, False, False)],
)
def test_a_process_without_a_scheduler_runs_queued_runs_and_claims_no_slot(
    url: str, database: Database, setting: bool, option: bool | None, schedules: bool
) -> None:
    with Holdfast(url, poll_interval=0.1, schedules=setting) as hf:
        hf.schedule(every=1, name="tick")(lambda: None)
        passed = hf.job(name="passed")(lambda: None)
        with hf.worker(schedules=option) as worker:
            assert worker.schedules is schedules
            [row] = hf.workers.list()
            assert bool(row.schedules) is schedules
            began = hf.clock.now()
            if schedules:
                wait_for(lambda: database.count("slots") > 0)
            while hf.clock.now() - began < timedelta(seconds=2.5):  # two slots come due
                passed.submit().result(PATIENCE)
                time.sleep(0.1)
            assert (database.count("slots") > 0) is schedules
