"""Counters: refusals and other things without a row of their own are counted in memory and written periodically."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import wait_for

from holdfast import Holdfast, QueueFull, StoreBusy
from holdfast.orchestrator import recover
from holdfast.store import counters
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


def counted(hf: Holdfast) -> dict[tuple[str, str], int]:
    hf.store.counters.flush(at_once=True)
    return hf.read(counters.read)


def test_a_refusal_is_counted_for_its_queue_and_written_at_most_once_a_second(hf: Holdfast, clock: FakeClock) -> None:
    @hf.job(name="work", queue="narrow")
    def work() -> None: ...

    hf.queue("narrow", max_queued=1)
    work.submit()

    def refused(submit: Callable[[], Any]) -> dict[tuple[str, str], int]:
        with pytest.raises(QueueFull):
            submit()
        return hf.read(counters.read)

    assert refused(work.submit) == {("queue_rejected", "narrow"): 1}
    assert refused(work.submit) == {("queue_rejected", "narrow"): 1}
    clock.advance(1)
    assert refused(lambda: work.submit_many([{}, {}])) == {("queue_rejected", "narrow"): 3}
    assert refused(work.submit) == {("queue_rejected", "narrow"): 3}
    hf.store.counters.flush(at_once=True)
    assert hf.read(counters.read) == {("queue_rejected", "narrow"): 4}


def test_a_refusal_inside_a_callers_transaction_is_counted_after_it(hf: Holdfast, database: Database) -> None:
    """The transaction may hold the only write lock, so writing the count at once would wait for itself."""

    @hf.job(name="work")
    def work() -> None: ...

    hf.queue("default", max_queued=1)
    work.submit()
    with contextlib.closing(database.connect()) as connection:
        database.begin(connection)
        with pytest.raises(QueueFull):
            work.using(connection=connection).submit()
        connection.execute("rollback")
    assert hf.read(counters.read) == {}
    assert counted(hf) == {("queue_rejected", "default"): 1}


def test_a_closing_process_writes_its_remaining_counts(url: str) -> None:
    with Holdfast(url) as hf:
        hf.start()
        hf.store.counters.add("lease_lost", count=3)
    with Holdfast(url) as hf:
        assert counted(hf) == {("lease_lost", ""): 3}


def test_counts_of_several_processes_add_up(hf: Holdfast) -> None:
    for _ in range(2):
        hf.do(lambda tx: counters.write(tx, {("takeover", ""): 2, ("slot_missed", "news"): 1}))
    assert counted(hf) == {("slot_missed", "news"): 2, ("takeover", ""): 4}


def test_an_unavailable_database_loses_no_count(
    hf: Holdfast, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = hf.store.counters
    counting.add("lease_lost")

    def away(verb: object) -> None:
        raise StoreBusy("locked")

    with monkeypatch.context() as broken:
        broken.setattr(hf.store, "do", away)
        counting.flush()
    counting.flush(at_once=True)
    assert hf.read(counters.read) == {("lease_lost", ""): 1}


def test_a_takeover_is_counted_when_it_happens(hf: Holdfast, clock: FakeClock, manual: Manual) -> None:
    @hf.job(name="work", on_crash="requeue")
    def work() -> None: ...

    work.submit()
    manual.worker("gone").claim()
    clock.advance(2 * hf.settings.lease)

    def undone(tx: Any) -> None:
        assert recover.expired(tx, wait=timedelta(0), limit=10)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        hf.do(undone)
    assert counted(hf) == {}
    manual.orchestrate()
    assert counted(hf) == {("takeover", ""): 1}


def test_a_missed_slot_is_counted_for_its_schedule(hf: Holdfast, clock: FakeClock, manual: Manual) -> None:
    @hf.schedule("0 * * * *", name="news", misfire_grace=60)
    def news() -> None: ...

    manual.schedule()
    clock.advance(timedelta(hours=3, minutes=30))
    manual.schedule()
    assert counted(hf) == {("slot_missed", "news"): 3}


def test_a_slot_refused_by_a_full_queue_is_counted_as_a_refusal(hf: Holdfast, clock: FakeClock, manual: Manual) -> None:
    @hf.job(name="work", queue="narrow")
    def work() -> None: ...

    @hf.schedule("0 * * * *", name="news", queue="narrow")
    def news() -> None: ...

    hf.queue("narrow", max_queued=1)
    work.submit()
    manual.schedule()
    clock.advance(timedelta(hours=1))
    manual.schedule()
    assert counted(hf) == {("queue_rejected", "narrow"): 1}


@pytest.mark.contract("J9")
def test_takeovers_at_the_start_of_a_worker_are_counted(url: str, database: Database) -> None:
    with Holdfast(url, single_process=True, poll_interval=0.05, lease=3) as hf:

        @hf.job(name="work")
        def work() -> None: ...

        work.submit_many([{}, {}])
        assert len(Manual(hf).worker("worker").claim(limit=2)) == 2
        with hf.worker():
            pass
        assert counted(hf) == {("takeover", ""): 2, ("startup_takeover", ""): 2}


def test_a_worker_counts_a_lost_lease_and_writes_the_count_at_its_next_poll(live: Holdfast, database: Database) -> None:
    @live.job(name="work")
    def work() -> None:
        database.run("delete from holdfast_leases")

    with live.worker():
        work.submit()
        wait_for(lambda: live.read(counters.read) == {("lease_lost", ""): 1})
