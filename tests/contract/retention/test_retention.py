"""Runs are deleted after their retention period unless they are unfinished, referenced or kept forever."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.artifact_files import stored_files
from tests.contract.helpers.retention import DAY, REFERENCES, TABLES, exists, rows
from tests.contract.helpers.waiting import hold_past_the_deadline

from holdfast import Cancelled, Context, Holdfast, Pruned, UnknownDependency
from holdfast.runs.events import record
from holdfast.testing import FakeClock, Manual
from holdfast.values.events import Event

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("P8")
@pytest.mark.parametrize(
    ("ending", "state", "days"),
    [("succeed", "succeeded", 30), ("fail", "failed", 90), ("cancel", "cancelled", 90), ("time out", "timed_out", 90)],
)
def test_a_run_is_deleted_with_all_its_rows_and_files_after_its_retention_period(
    artifact_hf: Holdfast,
    artifact_manual: Manual,
    clock: FakeClock,
    database: Database,
    ending: str,
    state: str,
    days: int,
) -> None:
    @artifact_hf.job(name="work", timeout=60)
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
        [claim] = artifact_manual.worker().claim()
        hold_past_the_deadline(artifact_manual.worker(), claim, clock)
        artifact_manual.orchestrate()
        assert artifact_hf.snapshot(claim.lease.run_id).state == state
    else:
        run = work.submit()
        artifact_manual.run_all()
        assert run.refresh().state == state
    before = rows(database)

    clock.advance(days * DAY)
    assert artifact_hf.prune() == Pruned()
    assert rows(database) == before

    clock.advance(timedelta(seconds=1))
    dry = artifact_hf.prune(dry_run=True)
    assert rows(database) == before
    removed = artifact_hf.prune()
    assert removed == dry
    assert (removed.runs, removed.artifacts, removed.bytes) == (1, before["artifacts"], 7 * before["artifacts"])
    assert rows(database) == dict.fromkeys(TABLES, 0)
    assert stored_files(artifact_hf) == set()
    assert artifact_hf.prune() == Pruned()
    assert artifact_hf.verify(artifacts=True) == []


@pytest.mark.contract("J4")
def test_runs_that_are_kept_forever_are_never_deleted(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="audited", keep_forever=True)
    def audited() -> None: ...

    kept = audited.submit()
    gone = audited.using(keep_forever=False).submit()
    manual.run_all()
    clock.advance(10_000 * DAY)
    assert hf.prune().runs == 1
    assert exists(hf, kept.id)
    assert not exists(hf, gone.id)


def test_a_retention_of_zero_means_forever(url: str, clock: FakeClock) -> None:
    with Holdfast(url, clock=clock, retention=0, retention_failed=timedelta(days=1)) as hf:

        @hf.job(name="work")
        def work(fails: bool) -> None:
            if fails:
                raise ValueError

        kept, gone = work.submit(fails=False), work.submit(fails=True)
        Manual(hf).run_all()
        clock.advance(10_000 * DAY)
        assert hf.prune().runs == 1
        assert exists(hf, kept.id)
        assert not exists(hf, gone.id)


@pytest.mark.contract("P8")
def test_a_run_that_has_not_ended_is_never_deleted(hf: Holdfast, manual: Manual, clock: FakeClock, work: Any) -> None:
    waiting = work.using(delay=100_000 * DAY).submit()
    ready = work.submit()
    leased = work.using(timeout=None, priority=1).submit()
    manual.worker().claim()
    clock.advance(10_000 * DAY)
    assert hf.prune() == Pruned()
    assert [hf.snapshot(run.id).place for run in (waiting, ready, leased)] == ["waits", "ready", "leases"]


REMOVE_REFERENCE = {
    "a dependency": "delete from holdfast_dependencies",
    "a build": "delete from holdfast_builds",
    "a cancellation of children": "delete from holdfast_child_cancellations",
    "a slot above the watermark": "update holdfast_schedules set evaluated_at = '2026-02-03'",
}


@pytest.mark.contract("P8")
@pytest.mark.parametrize("reference", list(REFERENCES))
def test_a_referenced_run_is_kept_until_nothing_refers_to_it(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, work: Any, reference: str
) -> None:
    referenced, other = work.submit(), work.submit()
    manual.run_all()
    database.run(
        "insert into holdfast_schedules (name, spec, evaluated_at, last_seen_at) "
        "values ('s', 'x', '2026-02-01', '2026-02-01')"
    )
    database.run(REFERENCES[reference].format(id=referenced.id))
    clock.advance(31 * DAY)

    assert hf.prune().runs == 1
    assert (exists(hf, referenced.id), exists(hf, other.id)) == (True, False)
    database.run(REMOVE_REFERENCE[reference])
    assert hf.prune().runs == 1
    assert database.count("slots") == 0


@pytest.mark.contract("P8")
def test_a_dependency_of_a_waiting_run_is_kept_and_depending_on_a_deleted_run_is_refused(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    old, slow = work.submit(), work.using(delay=60 * DAY).submit()
    manual.run_all()
    waiting = work.using(depends_on=[old, slow]).submit()
    clock.advance(31 * DAY)
    assert hf.prune() == Pruned(), (
        "the waiting run was not checked yet, so its dependency on the old run is still stored"
    )
    manual.run_all()
    hf.prune()
    assert not exists(hf, old.id)
    with pytest.raises(UnknownDependency):
        work.using(depends_on=[old]).submit()
    clock.advance(30 * DAY)
    manual.run_all()
    assert waiting.refresh().state == "succeeded"


def test_events_without_a_run_are_deleted_too(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    def record_events() -> None:
        hf.do(lambda tx: record(tx, [Event(run_id=None, kind="DATABASE_BUSY") for _ in range(3)]))

    record_events()
    clock.advance(20 * DAY)
    record_events()
    clock.advance(11 * DAY)
    assert hf.prune() == Pruned(events=3)
    assert database.count("events") == 3


@pytest.mark.contract("P8")
def test_the_retention_gate_is_closed_again_and_verify_finds_an_open_one(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, work: Any
) -> None:
    work.submit()
    kept = work.submit()
    manual.run_all()
    database.run(REFERENCES["a dependency"].format(id=kept.id))
    clock.advance(31 * DAY)
    assert hf.prune().runs == 1
    database.run("delete from holdfast_dependencies")
    assert database.count("retention_gate") == 0
    with pytest.raises(database.errors):
        database.run("delete from holdfast_outcomes")
    database.run("insert into holdfast_retention_gate (id) values ('left')")
    assert [found.problem for found in hf.verify()] == ["gate_left_open"]


def test_verify_finds_an_artifact_without_a_run(hf: Holdfast, database: Database) -> None:
    hf.start()
    database.run(
        "insert into holdfast_artifacts (folder, run_id, name, claim, size, sha256, created_at) "
        "values ('x', 'gone', 'out.txt', 1, 1, 'x', '2026-01-01')"
    )
    assert [(found.problem, found.run_id) for found in hf.verify()] == [("artifact_without_run", "gone")]
