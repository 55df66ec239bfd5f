"""Rollups: each ended run is counted once, across processes and interruptions."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.listing import runs_of

from holdfast import Holdfast, Retry, StoreBusy
from holdfast.orchestrator.statistics import LAG, NET, SPACING, Rollup
from holdfast.runs.cancel import cancel_by_hand
from holdfast.runs.outcomes import Succeeded
from holdfast.statistics import rollups
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database

LATER = rollups.LAG + timedelta(seconds=1)


@pytest.fixture
def work(hf: Holdfast) -> Any:
    @hf.job(name="work", retry=Retry(delay=0), max_attempts=2)
    def work(n: int) -> int:
        if n < 0:
            raise ValueError("negative")
        return n

    return work


def totals(hf: Holdfast) -> Counter[str]:
    found: Counter[str] = Counter()
    for _, _, state, count in hf.read(lambda tx: rollups.totals(tx, limit=1000)):
        found[state] += count.runs
    return found


def counted(hf: Holdfast, grain: int, job: str) -> int:
    def read(tx: Any) -> int:
        pairs = [(job, "*" if job == "*" else "default")]
        since = tx.now - timedelta(days=40)
        return sum(count.runs for _, _, count in rollups.series(tx, pairs, grain=grain, since=since, limit=10_000))

    return hf.read(read)


def test_each_ended_run_is_counted_once_in_every_rollup(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollups.read, "__kwdefaults__", {"limit": 3})
    for round_ in range(4):
        runs = [work.submit(n=n) for n in range(-2, 5)]
        hf.cancel(runs[-1])
        manual.run_all()
        clock.advance(timedelta(minutes=7) if round_ % 2 else 0.000001)
    clock.advance(LATER)
    manual.count_ended()
    manual.count_ended()
    assert totals(hf) == {"succeeded": 16, "failed": 8, "cancelled": 4}
    for grain in (1, 10, 60):
        assert counted(hf, grain, "work") == counted(hf, grain, "*") == 28


def test_a_slice_contains_all_runs_of_an_instant_or_none(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any
) -> None:
    """Seven runs end in one instant and two in another; a slice of at most five must not divide either group."""
    for count in (7, 2):
        for n in range(count):
            work.submit(n=n)
        manual.run_all()
        clock.advance(1)
    clock.advance(LATER)
    hf.do(rollups.begin)
    sizes = []
    while True:
        since = hf.read(rollups.mark)
        assert since is not None
        piece = hf.read(lambda tx, since=since: rollups.read(tx, since, limit=5))  # type: ignore[misc]
        if piece is None or not piece.rows:
            break
        sizes.append(sum(row["runs"] for row in piece.rows))
        assert hf.do(lambda tx, piece=piece: rollups.write(tx, piece))  # type: ignore[misc]
    assert [size for size in sizes if size] == [7, 2]
    assert totals(hf) == {"succeeded": 9}


def test_runs_that_have_just_ended_are_left_for_later(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any
) -> None:
    work.submit(n=1)
    manual.run_all()
    clock.advance(rollups.LAG)
    manual.count_ended()
    assert totals(hf) == {}
    clock.advance(0.001)
    manual.count_ended()
    assert totals(hf) == {"succeeded": 1}


def test_a_crash_midway_loses_no_run_and_counts_none_twice(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.submit(n=1)
    manual.run_all()
    clock.advance(LATER)

    def dies(*_: object) -> None:
        raise StoreBusy("locked")

    with monkeypatch.context() as broken:
        broken.setattr(rollups, "_add", dies)
        with pytest.raises(StoreBusy):
            manual.count_ended()
    assert (totals(hf), counted(hf, 1, "work")) == ({}, 0)
    manual.count_ended()
    assert (totals(hf), counted(hf, 1, "work")) == ({"succeeded": 1}, 1)


def test_a_second_process_writes_nothing_for_the_same_slice(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any
) -> None:
    work.submit(n=1)
    manual.run_all()
    clock.advance(LATER)
    hf.do(rollups.begin)
    since = hf.read(rollups.mark)
    assert since is not None
    piece = hf.read(lambda tx: rollups.read(tx, since))
    assert piece is not None
    assert hf.do(lambda tx: rollups.write(tx, piece))
    assert not hf.do(lambda tx: rollups.write(tx, piece))
    assert totals(hf) == {"succeeded": 1}


def test_a_run_committed_after_its_slice_was_read_is_not_missed(
    url: str, hf: Holdfast, clock: FakeClock, manual: Manual, work: Any
) -> None:
    with Holdfast(url, clock=FakeClock(clock.now())) as slow:
        work.submit_many([{"n": n} for n in range(2)])
        [claim] = manual.worker().claim(limit=1)
        manual.worker().finish(claim, Succeeded("1"))
        late = runs_of(hf, state="queued")[0].id
        clock.advance(LATER)
        hf.do(rollups.begin)
        since = hf.read(rollups.mark)
        assert since is not None
        piece = hf.read(lambda tx: rollups.read(tx, since))
        assert piece is not None
        slow.cancel(late)  # with a clock that is behind
        assert not hf.do(lambda tx: rollups.write(tx, piece))
    manual.count_ended()
    assert totals(hf) == {"succeeded": 1, "cancelled": 1}


def test_rollups_wait_for_runs_that_end_in_an_open_transaction(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction ends a run and commits late; runs that have ended since are counted together with it."""
    monkeypatch.setattr(rollups, "LAG", timedelta(0))
    monkeypatch.setattr(rollups, "MARGIN", timedelta(minutes=1))
    clock = FakeClock()
    with Holdfast(postgres_url, clock=clock) as hf:

        @hf.job(name="work")
        def work(n: int) -> int:
            return n

        manual = Manual(hf)
        first, second = work.submit_many([{"n": n} for n in range(2)])
        with hf.store.transaction() as held_up:
            cancel_by_hand(held_up, first.id, reason="slow")
            hf.cancel(second.id)
            clock.advance(30)
            manual.count_ended()
            assert totals(hf) == {}
        manual.count_ended()
        assert totals(hf) == {"cancelled": 2}


def test_many_orchestrators_at_once_count_each_run_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollups.read, "__kwdefaults__", {"limit": 7})
    clock = FakeClock()
    with Holdfast(url, clock=clock) as hf, Holdfast(url, clock=clock) as other:

        @hf.job(name="work")
        def work(n: int) -> int:
            return n

        manual = Manual(hf)
        other.start()
        work.submit_many([{"n": n} for n in range(120)])
        while manual.worker().claim():
            for claim in [*manual.worker().claim(limit=3)]:
                manual.worker().finish(claim)
            clock.advance(0.5)
        clock.advance(LATER)
        ended = len(runs_of(hf, state="succeeded"))
        together = threading.Barrier(4)
        failed: list[BaseException] = []

        def count(one: Holdfast) -> None:
            try:
                together.wait()
                Manual(one).count_ended()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=count, args=(one,)) for one in (hf, other) * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert ended > 50
        assert totals(hf) == {"succeeded": ended}
        assert counted(hf, 1, "*") == counted(hf, 60, "work") == ended


def test_a_run_that_never_started_has_a_waiting_time_and_no_run_time(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any
) -> None:
    run = work.submit(n=1)
    clock.advance(100)
    hf.cancel(run)
    clock.advance(LATER)
    manual.count_ended()
    [(_, _, state, count)] = hf.read(lambda tx: rollups.totals(tx, limit=10))
    assert (state, count.runs, count.waited.seconds, count.ran.count) == ("cancelled", 1, 100, 0)


def test_a_retried_run_is_timed_from_its_last_start_and_has_no_waiting_time(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any
) -> None:
    clock.advance(5)
    work.submit(n=-1)
    manual.run_all()
    clock.advance(LATER)
    manual.count_ended()
    [(_, _, state, count)] = hf.read(lambda tx: rollups.totals(tx, limit=10))
    assert (state, count.runs, count.waited.count, count.ran.count) == ("failed", 1, 0, 1)


def test_runs_that_ended_a_day_before_the_first_rollup_are_not_counted(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any
) -> None:
    for _ in range(2):
        work.submit(n=1)
        manual.run_all()
        clock.advance(timedelta(hours=13))
    manual.count_ended()
    assert totals(hf) == {"succeeded": 1}


def test_rollups_are_kept_as_long_as_their_resolution_says_and_totals_forever(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any
) -> None:
    work.submit(n=1)
    manual.run_all()
    clock.advance(LATER)
    manual.count_ended()
    left = []
    for days in (1, 2, 12, 16):
        clock.advance(timedelta(days=days))
        hf.prune()
        left.append([grain for grain in (1, 10, 60) if counted(hf, grain, "work")])
    assert left == [[1, 10, 60], [10, 60], [60], []]
    assert totals(hf) == {"succeeded": 1}


@pytest.fixture
def transactions(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Records, for each transaction that begins, whether it may write."""
    begun: list[bool] = []
    begin = hf.store.dialect.begin

    def counted(connection: Any, *, write: bool, **more: Any) -> Any:
        begun.append(write)
        return begin(connection, write=write, **more)

    monkeypatch.setattr(hf.store.dialect, "begin", counted)
    return begun


def test_an_idle_rollup_task_queries_once_a_minute_and_writes_nothing(
    hf: Holdfast, clock: FakeClock, transactions: list[bool]
) -> None:
    rollup_task = Rollup(hf.store, clock)
    clock.advance(NET)
    rollup_task.task.tick()  # the first tick stores where counting begins
    transactions.clear()
    for _ in range(600):
        clock.advance(1)
        rollup_task.task.tick()
    assert True not in transactions
    assert len(transactions) <= 2 * 600 / NET.total_seconds()


def test_a_busy_rollup_task_writes_every_few_seconds_and_one_ended_run_costs_one_query(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any, transactions: list[bool]
) -> None:
    rollup_task = Rollup(hf.store, clock)
    clock.advance(NET)
    rollup_task.task.tick()
    work.submit(n=1)
    manual.run_all()
    rollup_task.ended()
    transactions.clear()
    for _ in range(int(LAG + SPACING)):
        clock.advance(1)
        rollup_task.task.tick()
    assert transactions.count(True) == 1
    assert transactions.count(False) == 2
    assert totals(hf) == {"succeeded": 1}

    transactions.clear()
    for _ in range(60):
        work.submit(n=1)
        manual.run_all()
        rollup_task.ended()
        transactions.clear()
        clock.advance(1)
        rollup_task.task.tick()
    for _ in range(int(LAG + SPACING)):
        clock.advance(1)
        rollup_task.task.tick()
    assert totals(hf) == {"succeeded": 61}


def test_an_unavailable_database_is_tried_again_a_minute_later(
    hf: Holdfast, clock: FakeClock, manual: Manual, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.submit(n=1)
    manual.run_all()
    rollup_task = Rollup(hf.store, clock)
    clock.advance(NET)

    def away(*_: object) -> Any:
        raise StoreBusy("locked")

    with monkeypatch.context() as broken:
        broken.setattr(hf.store, "read", away)
        rollup_task.task.tick()
    clock.advance(1)
    rollup_task.task.tick()
    assert totals(hf) == {}
    clock.advance(NET)
    rollup_task.task.tick()
    assert totals(hf) == {"succeeded": 1}


def test_rollups_begin_only_once(hf: Holdfast, clock: FakeClock, database: Database) -> None:
    hf.do(rollups.begin)
    began = hf.read(rollups.mark)
    clock.advance(timedelta(days=2))
    hf.do(rollups.begin)
    assert hf.read(rollups.mark) == began
    assert database.count("watermarks") == 1
