"""Retention: what goes when its time is over, and what stays because it is kept, open or named."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.depots import lying_in
from tests.contract.patience import hold_past_the_deadline
from tests.contract.retaining import DAY, NAMED, TABLES, exists, rows

from holdfast import Cancelled, Context, Holdfast, Removed, UnknownNeed
from holdfast.runs.events import record
from holdfast.testing import FakeClock, Manual
from holdfast.values.events import Event

if TYPE_CHECKING:
    from tests.conftest import Database


@pytest.mark.contract("P8")
@pytest.mark.parametrize(
    ("ending", "state", "days"),
    [("succeed", "succeeded", 30), ("fail", "failed", 90), ("cancel", "cancelled", 90), ("time out", "timed_out", 90)],
)
def test_a_run_goes_with_all_that_is_its_own_when_its_time_is_over(
    keeping: Holdfast, hands: Manual, clock: FakeClock, database: Database, ending: str, state: str, days: int
) -> None:
    @keeping.job(name="work", timeout=60)
    def work(ctx: Context) -> None:
        ctx.step("one", lambda: 1)
        ctx.progress(1, 2)
        ctx.artifact("out.txt", b"content")
        if ending == "fail":
            raise ValueError
        if ending == "cancel":
            raise Cancelled

    if ending == "time out":
        work.submit()
        [claim] = hands.worker().claim()
        hold_past_the_deadline(hands.worker(), claim, clock)
        hands.orchestrate()
        assert keeping.snapshot(claim.lease.run_id).state == state
    else:
        run = work.submit()
        hands.run_all()
        assert run.refresh().state == state
    before = rows(database)

    clock.advance(days * DAY)
    assert keeping.retain() == Removed()
    assert rows(database) == before

    clock.advance(timedelta(seconds=1))
    dry = keeping.retain(dry_run=True)
    assert rows(database) == before
    removed = keeping.retain()
    assert removed == dry
    assert (removed.runs, removed.artifacts, removed.bytes) == (1, before["artifacts"], 7 * before["artifacts"])
    assert rows(database) == dict.fromkeys(TABLES, 0)
    assert lying_in(keeping) == set()
    assert keeping.retain() == Removed()
    assert keeping.verify(artifacts=True) == []


@pytest.mark.contract("J4")
def test_what_a_job_marks_as_audit_log_never_goes(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="audited", audit=True)
    def audited() -> None: ...

    kept = audited.submit()
    gone = audited.using(audit=False).submit()
    manual.run_all()
    clock.advance(10_000 * DAY)
    assert hf.retain().runs == 1
    assert exists(hf, kept.id)
    assert not exists(hf, gone.id)


def test_nought_means_for_ever(url: str, clock: FakeClock) -> None:
    with Holdfast(url, clock=clock, retain=0, retain_failed=timedelta(days=1)) as hf:

        @hf.job(name="work")
        def work(fails: bool) -> None:
            if fails:
                raise ValueError

        kept, gone = work.submit(fails=False), work.submit(fails=True)
        Manual(hf).run_all()
        clock.advance(10_000 * DAY)
        assert hf.retain().runs == 1
        assert exists(hf, kept.id)
        assert not exists(hf, gone.id)


@pytest.mark.contract("P8")
def test_what_has_not_ended_never_goes(hf: Holdfast, manual: Manual, clock: FakeClock, work: Any) -> None:
    waiting = work.using(delay=100_000 * DAY).submit()
    ready = work.submit()
    leased = work.using(timeout=None, priority=1).submit()
    manual.worker().claim()
    clock.advance(10_000 * DAY)
    assert hf.retain() == Removed()
    assert [hf.snapshot(run.id).place for run in (waiting, ready, leased)] == ["waits", "ready", "leases"]


UNNAMED = {
    "a need": "delete from holdfast_needs",
    "a build": "delete from holdfast_builds",
    "children to be stopped": "delete from holdfast_stops",
    "a slot above the watermark": "update holdfast_schedules set considered_at = '2026-02-03'",
}


@pytest.mark.contract("P8")
@pytest.mark.parametrize("who", list(NAMED))
def test_what_someone_names_stays_until_no_one_does(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, work: Any, who: str
) -> None:
    named, other = work.submit(), work.submit()
    manual.run_all()
    database.run(
        "insert into holdfast_schedules (name, spec, considered_at, seen_at) "
        "values ('s', 'x', '2026-02-01', '2026-02-01')"
    )
    database.run(NAMED[who].format(id=named.id))
    clock.advance(31 * DAY)

    assert hf.retain().runs == 1
    assert (exists(hf, named.id), exists(hf, other.id)) == (True, False)
    database.run(UNNAMED[who])
    assert hf.retain().runs == 1
    assert database.count("slots") == 0


@pytest.mark.contract("P8")
def test_a_run_that_is_needed_by_one_that_waits_stays_and_a_need_on_one_that_is_gone_is_refused(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    old, slow = work.submit(), work.using(delay=60 * DAY).submit()
    manual.run_all()
    waiting = work.using(after=[old, slow]).submit()
    clock.advance(31 * DAY)
    assert hf.retain() == Removed(), "not yet looked at: its need on the old one is still written down"
    manual.run_all()
    hf.retain()
    assert not exists(hf, old.id)
    with pytest.raises(UnknownNeed):
        work.using(after=[old]).submit()
    clock.advance(30 * DAY)
    manual.run_all()
    assert waiting.refresh().state == "succeeded"


def test_events_of_no_run_go_too(hf: Holdfast, manual: Manual, clock: FakeClock, database: Database) -> None:
    def tell() -> None:
        hf.do(lambda tx: record(tx, [Event(run_id=None, kind="SCHEDULER_CONTENTION") for _ in range(3)]))

    tell()
    clock.advance(20 * DAY)
    tell()
    clock.advance(11 * DAY)
    assert hf.retain() == Removed(events=3)
    assert database.count("events") == 3


@pytest.mark.contract("P8")
def test_the_gate_is_closed_again_and_verify_sees_one_that_is_not(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, work: Any
) -> None:
    work.submit()
    kept = work.submit()
    manual.run_all()
    database.run(NAMED["a need"].format(id=kept.id))
    clock.advance(31 * DAY)
    assert hf.retain().runs == 1
    database.run("delete from holdfast_needs")
    assert database.count("gates") == 0
    with pytest.raises(database.errors):
        database.run("delete from holdfast_outcomes")
    database.run("insert into holdfast_gates (id) values ('left')")
    assert [found.problem for found in hf.verify()] == ["gate_left_open"]


def test_verify_finds_an_artifact_of_no_run(hf: Holdfast, database: Database) -> None:
    hf.start()
    database.run(
        "insert into holdfast_artifacts (place, run_id, name, attempt, size, sha256, made_at) "
        "values ('x', 'gone', 'out.txt', 1, 1, 'x', '2026-01-01')"
    )
    assert [(found.problem, found.run_id) for found in hf.verify()] == [("artifact_without_run", "gone")]
