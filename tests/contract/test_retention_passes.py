"""A pass of retention is bounded, may be interrupted anywhere and is made good by the next one."""

from __future__ import annotations

import itertools
import logging
import threading
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.depots import lying_in
from tests.contract.retaining import DAY, rows
from tests.listing import runs_of

from holdfast import Context, Holdfast, HoldfastError, InvalidSetting, Removed
from holdfast.orchestrator import prune
from holdfast.orchestrator.prune import Pruner
from holdfast.runs import retention
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Fault, Faults, Manual

if TYPE_CHECKING:
    from tests.conftest import Database


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
    monkeypatch.setattr(prune, "FILES", 2)
    monkeypatch.setattr(prune, "EVENTS", 2)
    monkeypatch.setattr(prune, "RUNS", 2)

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


@pytest.mark.contract("P8")
def test_it_goes_in_bounded_batches_a_step_a_tick_and_reads_the_audit_log_once(
    url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker's own pass: at its own moment of the hour, and so that others have their turn in between."""
    monkeypatch.setattr(prune, "RUNS", 10)
    monkeypatch.setattr(prune, "PAGE", 10)
    with Holdfast(url, clock=clock, ids=Ids(seed=1)) as hf:

        @hf.job(name="work")
        def work(number: int) -> None: ...

        manual = Manual(hf)
        work.using(audit=True).submit_many([{"number": number} for number in range(30)])
        manual.run_all()
        work.submit_many([{"number": number} for number in range(35)])
        manual.run_all()
        clock.advance(31 * DAY)
        retainer = Pruner(hf.store, hf.settings, clock, artifact_store=lambda: hf._artifact_store, seed="worker-a")
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
                retainer.task.tick()
                retainer.task.tick()  # a ring in between is no tick
                left.append(len(runs_of(hf)))
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
    monkeypatch.setattr(prune, "EVERY", timedelta(milliseconds=100))
    pause = threading.Event()
    with Holdfast(url, tick=0.05, lease=3, retain=0.2, artifacts=tmp_path / "artifacts") as hf:

        @hf.job(name="work")
        def work(ctx: Context) -> None:
            ctx.artifact("out.txt", b"content")

        with hf.worker():
            run = work.submit()
            run.result(timeout=60)
            for _ in range(600):
                if not runs_of(hf):
                    break
                pause.wait(0.05)
        assert runs_of(hf) == []
        assert lying_in(hf) == set()


def test_a_pass_that_fails_is_logged_and_begun_again(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any, caplog: pytest.LogCaptureFixture
) -> None:
    work.submit()
    manual.run_all()
    clock.advance(31 * DAY)
    retainer = Pruner(hf.store, hf.settings, clock, artifact_store=lambda: hf._artifact_store, seed="a")
    Faults(hf).next(Fault.UNAVAILABLE)
    clock.advance(timedelta(hours=1))
    with caplog.at_level(logging.INFO):
        for _ in range(10):
            retainer.task.tick()
            clock.advance(hf.settings.tick)
        assert "retention: a fault: the database can't be reached" in caplog.text
        clock.advance(timedelta(hours=1))
        for _ in range(10):
            retainer.task.tick()
            clock.advance(hf.settings.tick)
    assert runs_of(hf) == []
    assert "removed 1 run" in caplog.text


def test_a_depot_that_can_not_be_opened_is_told_once_an_hour(
    hf: Holdfast, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    def depot() -> Any:
        raise InvalidSetting("artifacts: nowhere names no object storage")

    retainer = Pruner(hf.store, hf.settings, clock, artifact_store=depot, seed="a")
    clock.advance(timedelta(hours=1))
    for _ in range(10):
        retainer.task.tick()
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
            thread.join(timeout=60)
        assert len(removed) == 4
        assert sum(removed, start=Removed()) == Removed(runs=60, artifacts=6, bytes=42)
        hf.retain()
        assert runs_of(hf) == []
        assert hf.verify() == []
