"""Retention: what goes when, what never goes, and that whatever interrupts it is made good by the next pass."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.depots import lying_in

from holdfast import (
    Cancelled,
    Context,
    DepotUnavailable,
    Holdfast,
    HoldfastError,
    InvalidSetting,
    Removed,
    RunNotFound,
    UnknownNeed,
    Worker,
    clearing,
    retention,
    runs,
)
from holdfast.events import Event, record
from holdfast.ids import Ids
from holdfast.orchestrator import retain
from holdfast.orchestrator.retain import Retainer
from holdfast.policies import Policy
from holdfast.submissions import Submission
from holdfast.testing import FakeClock, Fault, Faults, Manual

if TYPE_CHECKING:
    from tests.conftest import Database

DAY = timedelta(days=1)
TABLES = ("runs", "outcomes", "events", "steps", "artifacts", "uniques", "slots")


def rows(database: Database, *tables: str) -> dict[str, int]:
    return {table: database.count(table) for table in tables or TABLES}


def exists(hf: Holdfast, run_id: str) -> bool:
    try:
        hf.snapshot(run_id)
    except RunNotFound:
        return False
    return True


def a_run(hf: Holdfast, **options: Any) -> str:
    """A run that has ended, submitted as other parts of the engine do."""
    submission = Submission(
        run_id=hf.ids.new(hf.clock.now()),
        job="work",
        queue="default",
        priority=0,
        key=None,
        args="{}",
        policy=Policy(),
        **options,
    )
    [answer] = hf.do(lambda tx: runs.submit(tx, [submission]))
    assert isinstance(answer, str)
    return answer


@pytest.fixture
def work(hf: Holdfast) -> Any:
    @hf.job(name="work")
    def work() -> None: ...

    return work


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
        clock.advance(timedelta(hours=1))
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


@pytest.mark.contract("S4")
def test_a_time_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="retain can't be negative"):
        Holdfast("sqlite:///never.db", retain=-1)


@pytest.mark.contract("P8")
def test_what_has_not_ended_never_goes(hf: Holdfast, manual: Manual, clock: FakeClock, work: Any) -> None:
    waiting = work.using(delay=100_000 * DAY).submit()
    ready = work.submit()
    leased = work.using(timeout=None, priority=1).submit()
    manual.worker().claim()
    clock.advance(10_000 * DAY)
    assert hf.retain() == Removed()
    assert [hf.snapshot(run.id).place for run in (waiting, ready, leased)] == ["waits", "ready", "leases"]


NAMED = {
    "a need": "insert into holdfast_needs (needed, run_id, must_succeed) values ('{id}', 'x', 0)",
    "a build": "insert into holdfast_builds (job, scope, fingerprint, run_id, since_at) "
    "values ('b', 's', 'f', '{id}', '2026-01-01')",
    "children to be stopped": "insert into holdfast_stops (parent_id, because, since_at) "
    "values ('{id}', 'x', '2026-01-01')",
    "a slot above the watermark": "insert into holdfast_slots (job, slot_at, state, run_id, manual, claimed_at) "
    "values ('s', '2026-02-02', 'ran', '{id}', 0, '2026-01-01')",
}
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


@pytest.mark.contract("P8")
def test_a_family_goes_together_when_all_of_it_has_ended_long_ago(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    def family(**last: Any) -> list[str]:
        parent = a_run(hf)
        child = a_run(hf, parent_id=parent, stage="child", segment="1")
        return [parent, child, a_run(hf, parent_id=child, stage="child", segment="2", **last)]

    whole = family()
    late = family(due_at=clock.now() + 10 * DAY)
    waits = family(due_at=clock.now() + 900 * DAY)
    orphan = a_run(hf, parent_id="0" * 26, stage="child", segment="1")
    manual.run_all()
    clock.advance(10 * DAY)
    manual.run_all()
    clock.advance(21 * DAY)

    assert hf.retain().runs == 4
    assert {one: [exists(hf, run_id) for run_id in ids] for one, ids in {"whole": whole, "late": late}.items()} == {
        "whole": [False] * 3,
        "late": [True] * 3,
    }
    assert not exists(hf, orphan)
    clock.advance(10 * DAY)
    assert hf.retain().runs == 3, "the last that ended decides for all"
    assert all(exists(hf, run_id) for run_id in waits)


@pytest.mark.contract("P8")
def test_one_that_failed_keeps_its_family_as_long_as_any_that_failed_is_kept(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    parent = a_run(hf)
    a_run(hf, parent_id=parent, stage="child", segment="1")
    hf.cancel(a_run(hf, parent_id=parent, stage="child", segment="2", due_at=clock.now() + DAY))
    manual.run_all()
    clock.advance(89 * DAY)
    assert hf.retain() == Removed()
    clock.advance(2 * DAY)
    assert hf.retain().runs == 3


@pytest.mark.contract("P8")
@pytest.mark.parametrize("why", ["audit", "needed"])
def test_a_family_of_which_one_must_stay_stays(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, work: Any, why: str
) -> None:
    parent = a_run(hf)
    child = a_run(hf, parent_id=parent, stage="child", segment="1")
    manual.run_all()
    if why == "audit":
        database.run(f"update holdfast_runs set audit = 1 where id = '{child}'")
    else:
        database.run(NAMED["a need"].format(id=child))
    clock.advance(400 * DAY)
    assert hf.retain() == Removed()


@pytest.mark.contract("P8")
def test_a_large_family_goes_in_several_transactions_its_head_last(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clearing, "RUNS", 3)
    head = a_run(hf)
    for number in range(7):
        a_run(hf, parent_id=head, stage="child", segment=str(number))
    manual.run_all()
    clock.advance(31 * DAY)
    limits = retention.limits(hf.settings, clock.now())
    seen = []
    for removed in clearing.steps(hf.store, hf.depot, limits, cursors={}):
        assert removed.runs <= 3
        seen.append((len(hf.list_runs()), exists(hf, head)))
    assert sorted(set(seen), reverse=True) == [(5, True), (2, True), (0, False)]


@pytest.mark.contract("P8", "L8")
def test_a_pipeline_that_another_repeats_stays_as_long_as_that_one(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    first = a_run(hf, kind="pipeline")
    manual.run_all()
    clock.advance(29 * DAY)
    second = a_run(hf, kind="pipeline", again_of=first)
    manual.run_all()
    clock.advance(10 * DAY)
    assert hf.retain() == Removed()
    clock.advance(21 * DAY)
    assert hf.retain().runs + hf.retain().runs == 2
    assert not exists(hf, first)
    assert not exists(hf, second)


def a_video(hf: Holdfast, calls: list[str]) -> Any:
    """A pipeline whose second stage makes a file of each segment."""
    video = hf.pipeline("video")

    @video.stage()
    def script(text: str) -> list[str]:
        return text.split()

    @video.stage(after=script, each="segment", version="v/2")
    def audio(ctx: Context, segment: str) -> int:
        def make(path: Path) -> None:
            calls.append(segment)
            path.write_bytes(segment.encode())

        return ctx.artifact("sound.bin", make).size

    @video.stage(after=audio)
    def render(ctx: Context, segments: list[int]) -> int:
        return ctx.artifact("video.bin", bytes(sum(segments))).size

    return video


@pytest.mark.contract("L8")
def test_a_pipelines_outputs_lie_where_stage_version_and_segment_say_and_a_rerun_finds_them(
    keeping: Holdfast, hands: Manual
) -> None:
    calls: list[str] = []
    first = a_video(keeping, calls).submit(text="one two")
    hands.run_all()
    assert first.result(timeout=1) == 6
    assert sorted(calls) == ["one", "two"]
    places = [f"{found.place}/{found.name}" for found in keeping.artifacts.of(first.id)]
    assert places == [
        f"{first.id}/audio@v%2F2/0/sound.bin",
        f"{first.id}/audio@v%2F2/1/sound.bin",
        f"{first.id}/render@1/~/video.bin",
    ]
    assert lying_in(keeping) == {f"{first.id[-2:]}/{place}" for place in places}

    again = keeping.again(first.id)
    hands.run_all()
    assert again.result(timeout=1) == 6
    assert sorted(calls) == ["one", "two"], "what is there and whole is not made again"
    once_more = keeping.again(again.id)
    hands.run_all()
    assert [f"{found.place}/{found.name}" for found in keeping.artifacts.of(once_more.id)] == places


@pytest.mark.contract("L8")
def test_an_output_that_a_rerun_relies_on_stays_when_the_run_that_made_it_goes(
    keeping: Holdfast, hands: Manual, clock: FakeClock, database: Database
) -> None:
    calls: list[str] = []
    first = a_video(keeping, calls).submit(text="one two")
    hands.run_all()
    made_by = {found.run_id for found in keeping.artifacts.of(first.id)}
    clock.advance(20 * DAY)
    again = keeping.again(first.id)
    hands.run_all()
    kept = keeping.artifacts.of(again.id)
    assert made_by.isdisjoint(found.run_id for found in kept)

    clock.advance(20 * DAY)
    assert keeping.retain() == Removed(), "and so does all of the pipeline that is repeated"
    keeping.do(lambda tx: retention.remove(tx, sorted(made_by)))
    assert [found.read() for found in kept] == [b"one", b"two", bytes(6)]
    clock.advance(20 * DAY)
    keeping.retain()
    keeping.retain()
    assert rows(database) == dict.fromkeys(TABLES, 0)
    assert lying_in(keeping) == set()


@pytest.mark.contract("P8", "L8")
@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("skip", range(6))
def test_whatever_interrupts_it_the_next_pass_makes_good(
    keeping: Holdfast,
    hands: Manual,
    clock: FakeClock,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
    skip: int,
) -> None:
    monkeypatch.setattr(clearing, "FILES", 2)
    monkeypatch.setattr(clearing, "EVENTS", 2)
    monkeypatch.setattr(clearing, "RUNS", 2)

    @keeping.job(name="work")
    def work(ctx: Context) -> None:
        ctx.progress(1, 2)
        ctx.artifact("out.txt", b"content")

    for _ in range(3):
        work.submit()
    hands.run_all()
    clock.advance(31 * DAY)
    fresh = work.submit()
    hands.run_all()
    faults = Faults(keeping)
    faults.next(fault, skip=skip)
    with pytest.raises(HoldfastError):
        keeping.retain()

    assert keeping.verify() == [], "what is left is whole"
    keeping.retain()
    assert rows(database, "runs", "outcomes", "events", "artifacts") == dict.fromkeys(
        ("runs", "outcomes", "events", "artifacts"), 1
    )
    assert len(lying_in(keeping)) == 1
    assert keeping.artifacts.get(fresh.id, "out.txt").read() == b"content"
    assert keeping.verify(artifacts=True) == []


@pytest.mark.contract("L8")
def test_files_that_can_not_be_removed_keep_their_rows(
    keeping: Holdfast, hands: Manual, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @keeping.job(name="work")
    def work(ctx: Context) -> None:
        ctx.artifact("out.txt", b"content")

    run = work.submit()
    hands.run_all()
    clock.advance(31 * DAY)

    def away(addresses: Sequence[str]) -> None:
        raise DepotUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(keeping.depot, "remove", away)
        with pytest.raises(DepotUnavailable):
            keeping.retain()
    assert keeping.artifacts.get(run.id, "out.txt").read() == b"content"
    assert keeping.retain().runs == 1


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
def test_it_goes_in_bounded_batches_a_step_a_tick_and_reads_the_audit_log_once(
    url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker's own pass: at its own moment of the hour, and so that others have their turn in between."""
    monkeypatch.setattr(clearing, "RUNS", 10)
    monkeypatch.setattr(clearing, "PAGE", 10)
    with Holdfast(url, clock=clock, ids=Ids(seed=1)) as hf:

        @hf.job(name="work")
        def work(number: int) -> None: ...

        manual = Manual(hf)
        work.using(audit=True).submit_many([{"number": number} for number in range(30)])
        manual.run_all()
        work.submit_many([{"number": number} for number in range(35)])
        manual.run_all()
        clock.advance(31 * DAY)
        retainer = Retainer(hf.store, hf.settings, clock, depot=lambda: hf.depot, seed="worker-a")
        left: list[int] = []
        read = 0
        page = retention.page

        def counting(*args: Any, **kwargs: Any) -> Any:
            nonlocal read
            found = page(*args, **kwargs)
            read += len(found)
            return found

        monkeypatch.setattr(retention, "page", counting)

        def ticks(count: int) -> None:
            for _ in range(count):
                retainer.tick()
                retainer.tick()  # a ring in between is no tick
                left.append(len(hf.list_runs(limit=1000)))
                clock.advance(hf.settings.tick)

        ticks(10)
        assert left[-1] == 65, "not at once"
        clock.advance(timedelta(hours=1))
        left.clear()
        ticks(60)
        assert left[-1] == 30
        assert all(0 <= before - after <= 10 for before, after in itertools.pairwise(left))
        assert len(set(left)) >= 4, "a batch a step"
        assert read == 65

        clock.advance(timedelta(hours=1))
        ticks(10)
        assert read == 65, "what is kept for ever is not read again every hour"
        clock.advance(DAY)
        ticks(10)
        assert read == 95, "but once a day, for what was spared and no longer is"


def test_a_real_worker_retains_by_itself(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(retain, "EVERY", timedelta(milliseconds=100))
    pause = threading.Event()
    with Holdfast(url, tick=0.05, lease=3, retain=0.2, artifacts=tmp_path / "artifacts") as hf:

        @hf.job(name="work")
        def work(ctx: Context) -> None:
            ctx.artifact("out.txt", b"content")

        with Worker(hf):
            run = work.submit()
            run.result(timeout=30)
            for _ in range(600):
                if not hf.list_runs():
                    break
                pause.wait(0.05)
        assert hf.list_runs() == []
        assert lying_in(hf) == set()


def test_a_pass_that_fails_is_logged_and_begun_again(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any, caplog: pytest.LogCaptureFixture
) -> None:
    work.submit()
    manual.run_all()
    clock.advance(31 * DAY)
    retainer = Retainer(hf.store, hf.settings, clock, depot=lambda: hf.depot, seed="a")
    Faults(hf).next(Fault.UNAVAILABLE)
    clock.advance(timedelta(hours=1))
    with caplog.at_level(logging.INFO):
        for _ in range(10):
            retainer.tick()
            clock.advance(hf.settings.tick)
        assert "retention: a fault: the database can't be reached" in caplog.text
        clock.advance(timedelta(hours=1))
        for _ in range(10):
            retainer.tick()
            clock.advance(hf.settings.tick)
    assert hf.list_runs() == []
    assert "removed 1 run" in caplog.text


def test_a_depot_that_can_not_be_opened_is_told_once_an_hour(
    hf: Holdfast, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    def depot() -> Any:
        raise InvalidSetting("artifacts: nowhere names no object storage")

    retainer = Retainer(hf.store, hf.settings, clock, depot=depot, seed="a")
    clock.advance(timedelta(hours=1))
    for _ in range(10):
        retainer.tick()
        clock.advance(hf.settings.tick)
    assert caplog.text.count("nowhere names no object storage") == 1


@pytest.mark.contract("P8")
def test_two_passes_at_once_do_no_harm(url: str, tmp_path: Path, clock: FakeClock) -> None:
    with Holdfast(url, clock=clock, artifacts=tmp_path / "artifacts") as hf:

        @hf.job(name="work")
        def work(ctx: Context, number: int) -> None:
            if number % 10 == 0:
                ctx.artifact("out.txt", b"content")

        work.submit_many([{"number": number} for number in range(60)])
        Manual(hf).run_all()
        clock.advance(31 * DAY)
        removed: list[Removed] = []
        threads = [threading.Thread(target=lambda: removed.append(hf.retain())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        assert len(removed) == 4
        assert sum(removed, start=Removed()) == Removed(runs=60, artifacts=6, bytes=42, events=removed[0].events * 0)
        hf.retain()
        assert hf.list_runs() == []
        assert hf.verify() == []


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
