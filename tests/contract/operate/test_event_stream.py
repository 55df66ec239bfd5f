"""Events: a reader that continues from any cursor misses none and reads none twice."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from tests.fixtures import Database
from tests.listing import runs_of

from holdfast import Context, Event, Holdfast, InvalidArguments, Job, RunNotFound, TryAgain
from holdfast.operate.changes import run_markers
from holdfast.runs import audit, events, steps
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.lease import require_lease
from holdfast.runs.limits import queues
from holdfast.runs.outcomes import Failed, Release, RetryLater, Succeeded
from holdfast.store.transaction import Transaction
from holdfast.support import json_text
from holdfast.testing import FakeClock, Manual
from holdfast.values.runs import Step


@pytest.fixture
def work(hf: Holdfast) -> Job[..., Any]:
    @hf.job(name="work", timeout=None, max_attempts=50, max_takeovers=50)
    def work() -> None: ...

    return work


def read(hf: Holdfast, run_id: str, *, after: str | None = None, limit: int = 1000) -> list[tuple[str, Event]]:
    """Read all events after the cursor, page by page."""
    found: list[tuple[str, Event]] = []
    while True:
        page = hf.timeline_page(run_id, after=after, limit=limit)
        found += page.events
        assert len(page.events) <= limit
        if not page.events:
            return found
        after = page.events[-1][0]


def same(found: list[Event], whole: list[Event]) -> bool:
    return Counter(map(plain, found)) == Counter(map(plain, whole))


def plain(event: Event) -> tuple[str, int | None, str, datetime | None]:
    return event.kind, event.claim, json_text.compact(event.data), event.happened_at


class Life:
    """Random operations on one run by a worker, an orchestrator and an operator."""

    def __init__(self, hf: Holdfast, manual: Manual, clock: FakeClock, run_id: str, chance: random.Random) -> None:
        self.hf, self.manual, self.clock, self.run_id, self.chance = hf, manual, clock, run_id, chance
        self.worker = manual.worker()
        self.claim: ClaimedRun | None = None
        self.numbers = count(1)

    def move(self) -> None:
        """Perform one random operation that is possible now."""
        self.clock.advance(timedelta(seconds=self.chance.choice((0, 0, 1, 7))))
        if self.claim is None:
            self.chance.choice((self.start, self.start, self.operate))()
        else:
            moves = (
                self.log,
                self.log,
                self.step,
                self.step,
                self.forget,
                self.retry,
                self.release,
                self.operate,
                self.lose,
            )
            self.chance.choice(moves)()

    def start(self) -> None:
        self.manual.orchestrate()
        claims = self.worker.claim()
        self.claim, self.numbers = (claims[0], count(1)) if claims else (None, self.numbers)

    def end(self) -> None:
        while self.claim is None:
            self.clock.advance(timedelta(minutes=10))
            self.start()
        self.worker.finish(self.claim, self.chance.choice((Succeeded(), Failed("ERROR", "no"))))
        self.operate()

    def log(self) -> None:
        data = {"message": self.chance.random()}
        self._fenced(
            lambda tx, claim: events.record(
                tx, [Event(run_id=self.run_id, kind="LOG", claim=claim.lease.claim, data=data)] * 2
            )
        )

    def step(self) -> None:
        """One step, or two that end in the same instant."""

        def remember(tx: Transaction, claim: ClaimedRun) -> None:
            done = [
                Step(
                    name=f"{claim.lease.claim}-{number}",
                    result="1",
                    claim=claim.lease.claim,
                    attempts=1,
                    started_at=tx.now - timedelta(seconds=self.chance.choice((0, 3))),
                    finished_at=tx.now,
                    number=number,
                )
                for number in (next(self.numbers) for _ in range(self.chance.choice((1, 2))))
            ]
            steps.insert(tx, [(self.run_id, step) for step in done])

        self._fenced(remember)

    def forget(self) -> None:
        """Forget one of the stored steps of the run, from any attempt."""

        def forget(tx: Transaction, claim: ClaimedRun) -> None:
            if known := steps.of(tx, self.run_id):
                steps.forget(tx, claim.lease, self.chance.choice(known).name)

        self._fenced(forget)

    def retry(self) -> None:
        self._leave(RetryLater("no", timedelta(seconds=1)))

    def release(self) -> None:
        self._leave(Release("enough"))

    def lose(self) -> None:
        self.clock.advance(self.hf.settings.lease * 2)
        self.manual.orchestrate()
        self.claim = None

    def operate(self) -> None:
        self.hf.again(self.run_id, by="ann")
        for run in runs_of(self.hf, state="queued"):
            if run.id != self.run_id:
                self.hf.cancel(run.id)

    def _leave(self, outcome: Any) -> None:
        assert self.claim is not None
        self.worker.finish(self.claim, outcome)
        self.claim = None

    def _fenced(self, write: Callable[[Transaction, ClaimedRun], None]) -> None:
        claim = self.claim
        assert claim is not None

        def fenced(tx: Transaction) -> None:
            require_lease(tx, claim.lease)
            write(tx, claim)

        self.hf.do(fenced)


@pytest.mark.parametrize("seed", range(4))
def test_events_read_from_any_cursor_add_up_to_the_whole_timeline(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Job[..., Any], seed: int
) -> None:
    chance = random.Random(seed)
    run = work.submit()
    life = Life(hf, manual, clock, run.id, chance)
    found: list[tuple[str, Event]] = []
    seen = hf.read(lambda tx: run_markers(tx, [run.id]))[run.id], 1
    for _ in range(20):
        life.move()
        now = hf.read(lambda tx: run_markers(tx, [run.id]))[run.id], len(hf.timeline_page(run.id).events)
        assert seen[0] != now[0] or seen[1] == now[1]  # new events must change the marker
        seen = now
        if chance.random() < 0.5:
            limit = chance.choice((1, 2, 5, 100))
            found += hf.timeline_page(run.id, after=found[-1][0] if found else None, limit=limit).events
    life.end()
    found += read(hf, run.id, after=found[-1][0] if found else None, limit=chance.choice((1, 3, 100)))

    whole = read(hf, run.id)
    story = hf.timeline(run.id)
    assert [event for _, event in whole] == story
    assert same([event for _, event in found], story)
    for reading in (whole, found):
        check_order([event for _, event in reading])
        for number, (cursor, _) in enumerate(reading):
            rest = read(hf, run.id, after=cursor, limit=1000 if number % 7 else 2)
            assert same([event for _, event in reading[: number + 1] + rest], story)
    last = hf.timeline_page(run.id, after=whole[-1][0])
    assert last.ended
    assert last.events == ()


def check_order(found: list[Event]) -> None:
    """Check that attempts and steps are in order, and that only operator actions follow the outcome."""
    assert found[0].kind == "RUN_QUEUED"
    started = [event.claim or 0 for event in found if event.kind == "RUN_STARTED"]
    assert started == sorted(set(started))
    finished = [(event.claim, int(event.data["step"].partition("-")[2])) for event in found if is_end(event)]
    assert finished == sorted(finished)
    for number, event in enumerate(found):
        if is_end(event):
            begun = [one.data["step"] for one in found[:number] if one.kind == "STEP_STARTED"]
            assert event.data["step"] in begun
    ending = next(number for number, event in enumerate(found) if event.kind in ("RUN_SUCCEEDED", "RUN_FAILED"))
    assert {event.kind for event in found[ending + 1 :]} <= {"OPERATOR_ACTION"}


def is_end(event: Event) -> bool:
    return event.kind == "STEP_FINISHED"


def test_a_long_log_is_read_in_ordered_pages(hf: Holdfast, manual: Manual, work: Job[..., Any]) -> None:
    run = work.submit()
    worker = manual.worker()
    [claim] = worker.claim()
    logs = [Event(run_id=run.id, kind="LOG", claim=1, data={"n": number}) for number in range(95)]
    hf.do(lambda tx: events.record(tx, logs))
    worker.finish(claim)

    found = [event for _, event in read(hf, run.id, limit=10)]

    assert [event.kind for event in found] == ["RUN_QUEUED", "RUN_STARTED", *["LOG"] * 95, "RUN_SUCCEEDED"]
    assert [event.data["n"] for event in found if event.kind == "LOG"] == list(range(95))
    assert not hf.timeline_page(run.id, limit=97).ended
    assert hf.timeline_page(run.id, limit=98).ended


def test_cursors_of_other_runs_and_altered_cursors_are_refused(hf: Holdfast, work: Job[..., Any]) -> None:
    one, other = work.submit(), work.submit()
    cursor = hf.timeline_page(one.id).events[-1][0]
    for wrong in (cursor[:-1], "", "0", 7):
        with pytest.raises(InvalidArguments, match="cursor"):
            hf.timeline_page(one.id, after=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments, match="cursor"):
        hf.timeline_page(other.id, after=cursor)
    with pytest.raises(RunNotFound):
        hf.timeline_page("nothing")
    assert hf.read(lambda tx: run_markers(tx, [])) == {}
    assert hf.read(lambda tx: run_markers(tx, ["nothing", one.id, one.id])).keys() == {one.id}


# Steps are numbered in the order of their writing.


def test_steps_are_numbered_in_the_order_of_writing_across_threads_and_attempts(live: Holdfast) -> None:
    hf = live

    @hf.job(name="parallel", max_attempts=2, timeout=30)
    def parallel(ctx: Context) -> None:
        def some(name: str) -> None:
            for number in range(5):
                ctx.step(f"{ctx.run.claim} {name} {number}", int)

        threads = [threading.Thread(target=some, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if ctx.run.claim == 1:
            raise TryAgain("once more", after=0)

    with hf.worker():
        run = parallel.submit()
        run.result(timeout=60)

    numbered = hf.read(lambda tx: steps.of(tx, run.id))
    assert [(step.claim, step.number) for step in numbered] == [(a, n) for a in (1, 2) for n in range(1, 21)]
    found = [event for _, event in read(hf, run.id, limit=7)]
    assert same(found, hf.timeline(run.id))
    assert [event.data["step"] for event in found if is_end(event)] == [step.name for step in numbered]


# Two transactions whose commits are in a different order from their writes, on a database that allows it.


@pytest.fixture
def postgres_hf(postgres_url: str) -> Iterator[Holdfast]:
    with Holdfast(postgres_url) as hf:
        yield hf


def wait_until_blocked(database: Database) -> None:
    """Wait until a connection waits for a lock."""
    for _ in range(6000):
        if database.all(
            "select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        ):
            return
        threading.Event().wait(0.01)
    raise AssertionError("no connection waits for a lock")


@pytest.mark.parametrize("action", ["cancel", "cancel by ann", "again"])
def test_writers_of_events_of_one_run_wait_for_each_other(
    postgres_hf: Holdfast, postgres_url: str, action: str
) -> None:
    """Events are numbered before the commit; without the wait, a reader could miss the event with the lower number."""
    hf, database = postgres_hf, Database(postgres_url)

    @hf.job(name="work")
    def work() -> None: ...

    run = work.submit()
    [claim] = Manual(hf).worker().claim()
    seen = hf.timeline_page(run.id).events[-1][0]
    actions: dict[str, Callable[[], object]] = {
        "cancel": lambda: hf.cancel(run.id),
        "cancel by ann": lambda: hf.cancel(run.id, by="ann"),
        "again": lambda: hf.again(run.id, by="ann"),
    }
    operator = threading.Thread(target=actions[action])
    with hf.store.transaction() as tx:
        require_lease(tx, claim.lease)
        events.record(tx, [Event(run_id=run.id, kind="LOG", claim=1, data={"message": "early"})])
        tx.all("find_events", run_id=run.id, after=0, limit=1)  # the event has been sent and has its number
        operator.start()
        wait_until_blocked(database)
        assert hf.timeline_page(run.id, after=seen).events == ()
    operator.join(timeout=60)

    found = {
        "cancel": ["CANCEL_REQUESTED"],
        "cancel by ann": ["CANCEL_REQUESTED", "OPERATOR_ACTION"],
        "again": ["OPERATOR_ACTION"],
    }
    assert [event.kind for _, event in hf.timeline_page(run.id, after=seen).events] == ["LOG", *found[action]]


def test_two_operators_write_events_of_an_ended_run_one_after_the_other(
    postgres_hf: Holdfast, postgres_url: str
) -> None:
    hf, database = postgres_hf, Database(postgres_url)

    @hf.job(name="work")
    def work() -> None: ...

    run = work.submit()
    hf.cancel(run.id)
    seen = hf.timeline_page(run.id).events[-1][0]
    other = threading.Thread(target=lambda: hf.again(run.id, by="ben"))
    with hf.store.transaction() as tx:
        audit.record(tx, "ann", "look", run_id=run.id)
        tx.all("find_events", run_id=run.id, after=0, limit=1)
        other.start()
        wait_until_blocked(database)
    other.join(timeout=60)

    assert [event.data["by"] for _, event in hf.timeline_page(run.id, after=seen).events] == ["ann", "ben"]


def test_events_of_all_runs_wait_for_the_oldest_open_transaction(postgres_hf: Holdfast) -> None:
    hf = postgres_hf
    hf.start()
    start = hf.events_cursor()

    def record_word(tx: Transaction, word: str) -> None:
        events.record(tx, [Event(run_id=None, kind="LOG", data={"word": word})])
        tx.all("find_events", run_id="", after=0, limit=1)  # the event has been sent and has its number

    def words_after(after: str) -> list[str]:
        return [event.data["word"] for _, event in hf.events(after=after).events]

    with hf.store.transaction() as early:
        record_word(early, "early")
        hf.do(lambda tx: record_word(tx, "late"))
        assert words_after(start) == []
        middle = hf.events_cursor()
    assert words_after(start) == words_after(middle) == ["early", "late"]
    first, second = hf.events(after=start).events
    assert words_after(first[0]) == ["late"]
    assert words_after(second[0]) == []


def test_events_of_a_transaction_that_began_early_and_writes_late_are_not_missed(postgres_hf: Holdfast) -> None:
    hf = postgres_hf
    hf.start()
    after = hf.events_cursor()

    def record_word(tx: Transaction, word: str) -> None:
        events.record(tx, [Event(run_id=None, kind="LOG", data={"word": word})])
        tx.all("find_events", run_id="", after=0, limit=1)

    with hf.store.transaction() as early:
        queues.pause_queue(early, "default", note=None)
        early.all("find_queue", name="default")  # the update has been sent, so the transaction has its id
        hf.do(lambda tx: record_word(tx, "smaller number"))
        record_word(early, "larger number")
    found = []
    while page := hf.events(after=after, limit=1).events:
        found.append(page[0][1].data["word"])
        after = page[0][0]

    assert sorted(found) == ["larger number", "smaller number"]


def test_events_of_all_runs_are_read_once_and_filtered_by_kind(
    hf: Holdfast, work: Job[..., Any], monkeypatch: Any
) -> None:
    monkeypatch.setattr(events, "BUDGET", 10)
    start = hf.events_cursor()
    kinds = ["LOG"] * 25 + ["PROGRESS"] + ["LOG"] * 5
    made = [Event(run_id=None, kind=kind, data={"n": number}) for number, kind in enumerate(kinds)]
    hf.do(lambda tx: events.record(tx, made))

    def all_of(**how: Any) -> Iterator[Event]:
        after = start
        for _ in range(50):
            page = hf.events(after=after, **how)
            yield from (event for _, event in page.events)
            if page.next == after:
                return
            after = page.next

    assert [event.data["n"] for event in all_of(limit=4)] == list(range(31))
    assert [event.data["n"] for event in all_of(limit=4, kinds={"PROGRESS"})] == [25]
    assert [event.data["n"] for event in all_of(limit=4, kinds=["LOG", "PROGRESS"])] == list(range(31))
    whole = hf.events(after=start)
    for number, (cursor, _) in enumerate(whole.events):
        rest = hf.events(after=cursor).events
        assert [event.data["n"] for _, event in rest] == list(range(number + 1, 31))
    assert hf.events(after=hf.events_cursor()).events == ()
    assert hf.events(kinds=()).events == ()
    for wrong in ({"kinds": "LOG"}, {"kinds": ["NONSENSE"]}, {"after": "x"}, {"limit": 0}):
        with pytest.raises(InvalidArguments):
            hf.events(**wrong)
