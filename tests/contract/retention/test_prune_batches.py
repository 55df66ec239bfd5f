"""Pruning is bounded and safe to interrupt; the next prune completes an interrupted one."""

from __future__ import annotations

import itertools
import logging
import threading
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.artifact_files import stored_files
from tests.contract.helpers.retention import DAY, rows
from tests.listing import runs_of

from holdfast import Context, Holdfast, HoldfastError, InvalidSetting, Pruned
from holdfast.orchestrator import prune
from holdfast.orchestrator.prune import Pruner
from holdfast.runs import retention
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Fault, Faults, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("P8", "L8")
@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("skip", range(6))
def test_the_next_prune_completes_an_interrupted_one(
    artifact_hf: Holdfast,
    artifact_manual: Manual,
    clock: FakeClock,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
    skip: int,
) -> None:
    monkeypatch.setattr(prune, "FILES", 2)
    monkeypatch.setattr(prune, "EVENTS", 2)
    monkeypatch.setattr(prune, "RUNS", 2)

    @artifact_hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.progress(1, 2)
        ctx.artifact("out.txt", b"content")

    for _ in range(3):
        work.submit()
    artifact_manual.run_all()
    clock.advance(31 * DAY)
    fresh = work.submit()
    artifact_manual.run_all()
    faults = Faults(artifact_hf)
    faults.next(fault, skip=skip)
    with pytest.raises(HoldfastError):
        artifact_hf.prune()

    assert artifact_hf.verify() == [], "the remaining rows must be consistent"
    artifact_hf.prune()
    assert rows(database, "runs", "outcomes", "events", "artifacts") == dict.fromkeys(
        ("runs", "outcomes", "events", "artifacts"), 1
    )
    assert len(stored_files(artifact_hf)) == 1
    assert artifact_hf.artifacts.get(fresh.id, "out.txt").read() == b"content"
    assert artifact_hf.verify(artifacts=True) == []


@pytest.mark.contract("P8")
def test_pruning_works_in_bounded_batches_and_reads_runs_kept_forever_once(
    url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker prunes at its own moment of each hour, one batch a tick, so that its other tasks run in between."""
    monkeypatch.setattr(prune, "RUNS", 10)
    monkeypatch.setattr(prune, "PAGE", 10)
    with Holdfast(url, clock=clock, ids=Ids(seed=1)) as hf:

        @hf.job(name="work")
        def work(number: int) -> None: ...

        manual = Manual(hf)
        work.using(keep_forever=True).submit_many([{"number": number} for number in range(30)])
        manual.run_all()
        work.submit_many([{"number": number} for number in range(35)])
        manual.run_all()
        clock.advance(31 * DAY)
        pruner = Pruner(hf.store, hf.settings, clock, artifact_store=lambda: hf._artifact_store, seed="worker-a")
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
                pruner.task.tick()
                pruner.task.tick()  # a second call before the next interval does nothing
                left.append(len(runs_of(hf)))
                clock.advance(hf.settings.poll_interval)

        ticks(10)
        assert left[-1] == 65, "pruning must not start at once"
        clock.advance(timedelta(hours=1))
        left.clear()
        ticks(60)
        assert left[-1] == 30
        assert all(0 <= before - after <= 10 for before, after in itertools.pairwise(left))
        assert len(set(left)) >= 4, "each tick must delete one batch"
        assert read == 65

        clock.advance(timedelta(hours=1))
        ticks(10)
        assert read == 65, "runs that are kept forever must not be read again every hour"
        clock.advance(DAY)
        ticks(10)
        assert read == 95, "they are read again once a day, in case they need no longer be kept"


def test_a_worker_prunes_by_itself(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prune, "EVERY", timedelta(milliseconds=100))
    pause = threading.Event()
    with Holdfast(url, poll_interval=0.05, lease=3, retention=0.2, artifacts=tmp_path / "artifacts") as hf:

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
        assert stored_files(hf) == set()


def test_a_failed_prune_is_logged_and_started_again(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any, caplog: pytest.LogCaptureFixture
) -> None:
    work.submit()
    manual.run_all()
    clock.advance(31 * DAY)
    pruner = Pruner(hf.store, hf.settings, clock, artifact_store=lambda: hf._artifact_store, seed="a")
    Faults(hf).next(Fault.UNAVAILABLE)
    clock.advance(timedelta(hours=1))
    with caplog.at_level(logging.INFO):
        for _ in range(10):
            pruner.task.tick()
            clock.advance(hf.settings.poll_interval)
        assert "retention: injected fault: the database can't be reached" in caplog.text
        clock.advance(timedelta(hours=1))
        for _ in range(10):
            pruner.task.tick()
            clock.advance(hf.settings.poll_interval)
    assert runs_of(hf) == []
    assert "deleted 1 run" in caplog.text


def test_an_artifact_store_that_cannot_be_opened_is_logged_once_an_hour(
    hf: Holdfast, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    def unavailable() -> Any:
        raise InvalidSetting("artifacts: nowhere names no object storage")

    pruner = Pruner(hf.store, hf.settings, clock, artifact_store=unavailable, seed="a")
    clock.advance(timedelta(hours=1))
    for _ in range(10):
        pruner.task.tick()
        clock.advance(hf.settings.poll_interval)
    assert caplog.text.count("nowhere names no object storage") == 1


@pytest.mark.contract("P8")
def test_simultaneous_prunes_delete_each_run_once(url: str, tmp_path: Path, clock: FakeClock) -> None:
    with Holdfast(url, clock=clock, artifacts=tmp_path / "artifacts") as hf:

        @hf.job(name="work")
        def work(ctx: Context, number: int) -> None:
            if number % 10 == 0:
                ctx.artifact("out.txt", b"content")

        work.submit_many([{"number": number} for number in range(60)])
        Manual(hf).run_all()
        clock.advance(31 * DAY)
        removed: list[Pruned] = []
        threads = [threading.Thread(target=lambda: removed.append(hf.prune())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert len(removed) == 4
        assert sum(removed, start=Pruned()) == Pruned(runs=60, artifacts=6, bytes=42)
        hf.prune()
        assert runs_of(hf) == []
        assert hf.verify() == []
