"""Schedules: each slot is claimed once, no two runs of a job overlap, and every slot says what became of it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import (
    Holdfast,
    InvalidPolicy,
    QueueFull,
    ScheduleNotFound,
    Slot,
    SlotTaken,
    StillRunning,
    Worker,
    WorkerExists,
)
from holdfast.ids import Ids
from holdfast.orchestrator import schedule as scheduler
from holdfast.orchestrator.loop import Orchestrator
from holdfast.orchestrator.schedule import Timetable
from holdfast.outcomes import Failed
from holdfast.testing import FakeClock, Manual
from holdfast.workers import Pulse

if TYPE_CHECKING:
    from tests.conftest import Database

QUARTER, HOUR, DAY = timedelta(minutes=15), timedelta(hours=1), timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
FLAGS = ("ready", "looks", "open_holds", "needs", "errands", "stops", "cancels", "drains")
PULSE = Pulse(**dict.fromkeys(FLAGS, False), expires_at=None, due_at=None, clock_at=None)


@pytest.fixture
def ingest(hf: Holdfast, manual: Manual) -> Any:
    return scheduled(hf, manual)


def scheduled(hf: Holdfast, manual: Manual, when: Any = "*/15 * * * *", **options: Any) -> Any:
    """A job with a schedule that an orchestrator knows since now."""

    @hf.schedule(when, name="ingest", **options)
    def ingest(scheduled_for: datetime) -> str:
        return scheduled_for.isoformat()

    assert manual.schedule() == 0, "a new schedule has no slots before it was known"
    return ingest


def told(hf: Holdfast, **which: Any) -> list[str]:
    """Slots as 'HH:MM outcome'."""
    return [
        f"{slot.scheduled_for:%H:%M} {slot.outcome}" for slot in hf.schedules.slots("ingest", **({"next": 0} | which))
    ]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# One claim a slot


@pytest.mark.contract("J3", "J5", "J8")
def test_a_slot_that_is_due_has_one_run_which_knows_its_canonical_time(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    clock.advance(QUARTER + timedelta(seconds=7.5))

    assert manual.run_all() == 1
    assert manual.run_all() == 0, "the same slot twice"

    [slot] = hf.schedules.slots("ingest", next=0)
    assert slot.run_id is not None
    run = hf.get(slot.run_id)
    assert (slot.scheduled_for, slot.outcome, slot.manual) == (START + QUARTER, "ran", False)
    assert (run.snapshot.kind, run.snapshot.audit, run.result(timeout=0)) == ("slot", True, "2026-01-01T00:15:00+00:00")
    assert slot.claimed_at == run.snapshot.created_at == clock.now()
    assert hf.verify() == []


@pytest.mark.contract("J3")
def test_eight_schedulers_at_once_give_each_slot_one_run(
    url: str, hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    """Each with an engine of its own, none of them leader, at the same slots at the same moment."""
    scheduled(hf, manual, overlap="wait")
    with ExitStack() as opened:
        tables = [opened.enter_context(another(url, clock, number)) for number in range(8)]
        barrier = threading.Barrier(8)
        for _ in range(6):
            clock.advance(QUARTER)
            with ThreadPoolExecutor(8) as pool:
                decided = list(pool.map(lambda table: (barrier.wait(), table.keep(clock.now()))[1], tables))
            assert sum(decided) == 1

    claimed = database.all("select slot_at, run_id from holdfast_slots where state = 'claimed'")
    assert len({slot_at for slot_at, _ in claimed}) == len({run_id for _, run_id in claimed}) == 6
    assert database.all("select count(*) from holdfast_runs") == [(6,)]
    assert hf.verify() == []


class another(ExitStack):  # noqa: N801 - reads as a verb
    """Another process's engine and timetable with the same schedule."""

    def __init__(self, url: str, clock: FakeClock, seed: int = 7, when: Any = "*/15 * * * *", **options: Any) -> None:
        super().__init__()
        self.hf = self.enter_context(Holdfast(url, clock=clock, ids=Ids(seed=100 + seed)))
        self.hf.schedule(when, name="ingest", **({"overlap": "wait"} | options))(_ingest)

    def __enter__(self) -> Any:
        return Timetable(self.hf.store, self.hf.scheduled)


def _ingest(scheduled_for: datetime) -> str:
    return scheduled_for.isoformat()


@pytest.mark.contract("J3", "S3")
def test_a_scheduler_that_dies_in_the_middle_loses_no_slot(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, ingest: Any
) -> None:
    class Killed(Exception):
        pass

    def die(tx: Any) -> None:
        assert scheduler.consider(tx, hf.scheduled["ingest"], take_over=False) == 1
        raise Killed

    clock.advance(QUARTER)
    with pytest.raises(Killed):
        hf.do(die)
    assert (database.count("slots"), database.count("runs")) == (0, 0)

    assert manual.run_all() == 1
    assert told(hf) == ["00:15 ran"]


@pytest.mark.contract("J3", "L7")
def test_a_slots_run_is_never_started_twice(hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any) -> None:
    """Its worker is lost in the middle: the run has failed, and no one tries again."""
    clock.advance(QUARTER)
    manual.orchestrate()
    assert len(manual.worker("lost").claim()) == 1

    clock.advance(3 * hf.settings.lease)
    manual.orchestrate()

    assert manual.worker().claim() == []
    [slot] = hf.schedules.slots("ingest", next=0)
    assert (slot.outcome, slot.holder) == ("failed", "lost")
    assert hf.snapshot(slot.run_id or "").failure_type == "PROCESS_TERMINATED"


# Clocks


@pytest.mark.contract("J5", "J10")
def test_a_clock_that_jumps_forwards_leaves_no_slot_without_an_outcome(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    clock.step(HOUR)
    manual.run_all()
    assert told(hf) == ["00:15 missed", "00:30 missed", "00:45 missed", "01:00 ran"]


@pytest.mark.contract("J3", "J5")
@pytest.mark.parametrize(
    ("jump", "claimed"),
    [
        (timedelta(seconds=20), ["00:30", "00:45", "01:00", "01:15", "01:30"]),
        (HOUR, ["01:30"]),  # all before were decided while the clock was ahead
        (400 * DAY, ["00:30", "00:45", "01:00", "01:15", "01:30"]),  # those were only summed up
    ],
)
def test_a_clock_that_was_ahead_and_is_set_back_doubles_nothing_and_stops_nothing(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any, jump: timedelta, claimed: list[str]
) -> None:
    clock.advance(QUARTER)
    manual.run_all()
    clock.step(jump)
    manual.run_all()
    clock.step(-jump)
    before = {slot.scheduled_for for slot in hf.schedules.slots("ingest", last=2000, next=0)}

    for _ in range(5):
        clock.advance(QUARTER)
        manual.run_all()

    slots = hf.schedules.slots("ingest", last=2000, next=0)
    assert [f"{slot.scheduled_for:%H:%M}" for slot in slots if slot.scheduled_for not in before] == claimed
    assert [slot.outcome for slot in slots if slot.scheduled_for not in before] == ["ran"] * len(claimed)
    runs = [slot.run_id for slot in slots if slot.run_id is not None]
    assert len(set(runs)) == len(runs) == len(hf.list_runs(limit=1000))
    assert hf.verify() == []


@pytest.mark.contract("J5")
def test_a_process_that_has_seen_the_far_future_goes_on_in_the_present(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    """What it keeps in memory, when to look next, is set back with the clock."""
    table = Timetable(hf.store, hf.scheduled)
    clock.step(400 * DAY)
    table.keep(clock.now())
    clock.step(-400 * DAY)
    table.keep(clock.now())
    clock.advance(QUARTER)
    assert table.keep(clock.now()) == 1


@pytest.mark.contract("J5")
@pytest.mark.parametrize(
    ("tz", "when", "midnight", "expected"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-03-29", ["01:00"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25", ["00:30"]),
        ("Europe/Berlin", "0 */1 * * *", "2026-10-25", [f"{hour:02}:00" for hour in range(8)]),
        ("America/New_York", "0 3 * * *", "2026-03-08", ["07:00"]),
        ("Australia/Lord_Howe", "*/30 2 * * *", "2026-04-04", ["15:30", "16:00"]),
    ],
)
def test_slots_are_right_on_the_day_that_the_clocks_change(
    hf: Holdfast, manual: Manual, clock: FakeClock, tz: str, when: str, midnight: str, expected: list[str]
) -> None:
    clock.step(at(midnight) - QUARTER - clock.now())
    scheduled(hf, manual, when, tz=tz)
    for _ in range(96 if tz.startswith("Aus") else 32):
        clock.advance(QUARTER)
        manual.run_all()
    assert told(hf, last=200) == [f"{slot} ran" for slot in expected]


# What late and overlapping slots mean


@pytest.mark.contract("J10")
@pytest.mark.parametrize(
    ("options", "late", "expected"),
    [
        ({}, timedelta(minutes=47), ["00:15 missed", "00:30 missed", "00:45 ran"]),
        ({}, timedelta(minutes=55), ["00:15 missed", "00:30 missed", "00:45 missed"]),
        ({"misfire_grace": HOUR}, timedelta(minutes=47), ["00:15 coalesced", "00:30 coalesced", "00:45 ran"]),
        ({"misfire_grace": HOUR, "coalesce": False}, timedelta(minutes=47), ["00:15 ran", "00:30 ran", "00:45 ran"]),
        ({"misfire_grace": None}, timedelta(minutes=47), ["00:15 coalesced", "00:30 coalesced", "00:45 ran"]),
        ({"catch_up": "latest"}, timedelta(minutes=55), ["00:15 missed", "00:30 missed", "00:45 ran"]),
        ({"catch_up": 30 * 60}, timedelta(minutes=55), ["00:15 missed", "00:30 ran", "00:45 ran"]),
        (
            {"catch_up": HOUR, "coalesce": True},
            timedelta(minutes=55),
            ["00:15 coalesced", "00:30 coalesced", "00:45 ran"],
        ),
    ],
)
def test_slots_that_come_late_follow_the_schedules_terms(
    hf: Holdfast,
    manual: Manual,
    clock: FakeClock,
    options: dict[str, Any],
    late: timedelta,
    expected: list[str],
) -> None:
    scheduled(hf, manual, **options)
    clock.advance(late)
    manual.run_all()
    assert told(hf) == expected


@pytest.mark.contract("J10")
def test_the_slots_of_a_pause_are_late_ones(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, ingest: Any
) -> None:
    hf.schedules.pause("ingest", note="the feed is down")
    clock.advance(31 * timedelta(minutes=1))
    assert manual.run_all() == 0
    assert database.count("slots") == 0
    [standing] = hf.schedules.list()
    assert (standing.paused_at, standing.note, standing.next_at) == (START, "the feed is down", None)

    hf.schedules.resume("ingest")
    manual.run_all()

    assert told(hf) == ["00:15 missed", "00:30 ran"]
    assert hf.schedules.list()[0].paused_at is None


@pytest.mark.contract("J7")
def test_a_slot_is_skipped_while_an_earlier_run_has_not_ended_and_says_why(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, max_runtime=2 * HOUR)
    clock.advance(QUARTER)
    manual.orchestrate()
    worker = manual.worker("busy")
    [claim] = worker.claim()
    keep(worker, claim, clock, QUARTER)
    assert manual.run_all() == 0
    worker.finish(claim)
    clock.advance(QUARTER)
    manual.run_all()

    assert told(hf) == ["00:15 ran", "00:30 skipped", "00:45 ran"]
    skipped = hf.schedules.slots("ingest", next=0)[1]
    assert skipped.because == f"run {claim.lease.run_id} of slot 2026-01-01T00:15:00Z has not ended (on busy)"


def keep(worker: Any, claim: Any, clock: FakeClock, for_: timedelta) -> None:
    """Time goes by, and the worker says that it lives."""
    step = timedelta(seconds=5)
    for _ in range(int(for_ / step)):
        clock.advance(step)
        worker.renew(claim)


@pytest.mark.contract("J7")
@pytest.mark.parametrize("instances", [1, 2])
def test_runs_that_wait_for_their_turn_never_overlap_beyond_max_instances(
    hf: Holdfast, manual: Manual, clock: FakeClock, instances: int
) -> None:
    scheduled(hf, manual, overlap="wait", max_instances=instances, max_runtime=DAY)
    worker = manual.worker()
    for _ in range(3):
        clock.advance(QUARTER)
        manual.schedule()
    manual.promote()

    claims = worker.claim(limit=9)

    assert len(claims) == instances
    assert told(hf) == ["00:15 running", "00:30 queued" if instances == 1 else "00:30 running", "00:45 queued"]
    while claims:
        assert len(claims) <= instances
        for claim in claims:
            worker.finish(claim)
        manual.promote()
        claims = worker.claim(limit=9)
    assert told(hf) == ["00:15 ran", "00:30 ran", "00:45 ran"]


@pytest.mark.contract("J7")
def test_a_slot_may_cancel_the_run_of_the_one_before_and_starts_when_that_has_stopped(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, overlap="cancel", max_runtime=DAY)
    clock.advance(QUARTER)
    manual.orchestrate()
    worker = manual.worker()
    [first] = worker.claim()
    clock.advance(QUARTER)
    manual.schedule()
    assert worker.renew(first).cancelled
    manual.promote()
    assert worker.claim() == [], "the run before has not stopped yet"

    clock.advance(QUARTER)
    manual.schedule()  # the run of 00:30 has not even started
    worker.finish(first, Failed("ERROR", "stopped"))
    manual.run_all()

    assert told(hf) == ["00:15 failed", "00:30 cancelled", "00:45 ran"]


@pytest.mark.contract("J7")
def test_a_slot_that_is_refused_cancels_no_one(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    hf.queues.limit("slow", max_queued=1)
    scheduled(hf, manual, overlap="cancel", max_runtime=DAY, queue="slow")
    clock.advance(QUARTER)
    manual.schedule()
    worker = manual.worker(queues=["slow"])
    [first] = worker.claim()
    keep(worker, first, clock, QUARTER)
    manual.schedule()
    assert told(hf) == ["00:15 running", "00:30 skipped"]
    assert hf.snapshot(first.lease.run_id).cancel_requested_at is None


@pytest.mark.contract("J7")
def test_a_run_submitted_by_hand_does_not_overlap_either(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    ingest.submit(scheduled_for=START)
    [claim] = manual.worker().claim()
    ingest.submit(scheduled_for=START)
    manual.promote()
    assert manual.worker().claim() == []

    clock.advance(timedelta(seconds=5))
    with pytest.raises(StillRunning):
        hf.schedules.trigger("ingest", scheduled_for=START)
    assert claim.lease.ticket.key == "schedule:ingest"


@pytest.mark.contract("J3", "S4")
def test_a_slot_whose_queue_is_full_is_skipped_and_says_so(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    hf.queues.limit("slow", max_queued=1)
    filler = hf.job(name="filler", queue="slow")(lambda: None).submit()
    scheduled(hf, manual, queue="slow")
    clock.advance(QUARTER)
    manual.schedule()

    [slot] = hf.schedules.slots("ingest", next=0)
    assert (slot.outcome, slot.run_id) == ("skipped", None)
    assert slot.because is not None
    assert "1 is the limit" in slot.because
    with pytest.raises(QueueFull):
        hf.schedules.trigger("ingest", scheduled_for=START)
    assert (database.count("slots"), database.count("runs")) == (1, 1)
    assert hf.verify() == []
    hf.cancel(filler.id)
    clock.advance(QUARTER)
    manual.run_all()
    assert told(hf) == ["00:15 skipped", "00:30 ran"]


@pytest.mark.contract("J6")
def test_a_run_over_its_longest_time_whose_worker_is_silent_reads_skipped_timeout_and_the_next_slot_runs(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, expected_runtime=300)
    clock.advance(QUARTER)
    manual.orchestrate()
    [claim] = manual.worker("gone").claim()
    assert claim.policy.timeout == timedelta(seconds=600), "twice the expected maximum"

    clock.advance(QUARTER)
    assert manual.schedule() == 1, "a run that is over its time keeps no slot from being claimed"
    assert told(hf) == ["00:15 running", "00:30 queued"]
    assert manual.worker().claim() == [], "but its turn comes only when the other has ended"
    manual.run_all()

    assert told(hf) == ["00:15 skipped_timeout", "00:30 ran"]
    assert hf.schedules.slots("ingest", next=0)[0].finished_at == clock.now()


@pytest.mark.contract("J6", "J7")
def test_a_run_over_its_longest_time_whose_worker_lives_is_never_overlapped(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    """Its worker stops it at its deadline; until its lease is over, no one else may begin."""
    scheduled(hf, manual, max_runtime=880)
    clock.advance(QUARTER)
    manual.orchestrate()
    worker = manual.worker("late")
    [claim] = worker.claim()
    keep(worker, claim, clock, timedelta(seconds=885))
    assert claim.lease.deadline_at is not None
    assert claim.lease.deadline_at < clock.now()

    clock.advance(timedelta(seconds=4))
    manual.orchestrate()
    assert hf.snapshot(claim.lease.run_id).state == "running"
    clock.advance(timedelta(seconds=11))
    manual.run_all()
    assert told(hf) == ["00:15 skipped_timeout", "00:30 ran"]


@pytest.mark.contract("J8")
def test_a_slot_tells_what_became_of_its_run(hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any) -> None:
    worker = manual.worker("w")
    clock.advance(QUARTER)
    manual.orchestrate()
    assert told(hf) == ["00:15 queued"]
    [claim] = worker.claim()
    assert told(hf) == ["00:15 running"]
    worker.finish(claim, Failed("ERROR", "no feed"))
    [slot] = hf.schedules.slots("ingest", next=0)
    assert (slot.outcome, slot.error, slot.holder, slot.finished_at) == ("failed", "no feed", "w", clock.now())

    clock.advance(QUARTER)
    manual.orchestrate()
    hf.cancel(hf.schedules.slots("ingest", next=0)[-1].run_id or "")
    assert told(hf) == ["00:15 failed", "00:30 cancelled"]


# By hand


@pytest.mark.contract("J11")
def test_a_slot_claimed_by_hand_is_not_claimed_again_when_its_time_comes(
    hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    run = hf.schedules.trigger("ingest", scheduled_for=START + QUARTER)
    manual.run_all()
    clock.advance(QUARTER)

    assert manual.run_all() == 0

    [slot] = hf.schedules.slots("ingest", next=0)
    assert (slot.run_id, slot.outcome, slot.manual) == (run.id, "ran", True)


@pytest.mark.contract("J11")
def test_a_taken_slot_is_refused_by_the_name_of_its_run_and_nothing_changes(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, ingest: Any
) -> None:
    clock.advance(HOUR)
    manual.run_all()
    slots = hf.schedules.slots("ingest", next=0)
    before = database.counts() | {"slots": database.count("slots")}

    with pytest.raises(SlotTaken, match=f"run {slots[-1].run_id}") as taken:
        hf.schedules.trigger("ingest", scheduled_for=slots[-1].scheduled_for)
    assert (taken.value.run_id, taken.value.code) == (slots[-1].run_id, "slot_taken")
    with pytest.raises(SlotTaken, match="missed"):
        hf.schedules.trigger("ingest", scheduled_for=slots[0].scheduled_for)

    assert database.counts() | {"slots": database.count("slots")} == before


@pytest.mark.contract("J3", "J11")
def test_of_hands_and_schedulers_at_one_slot_only_one_gets_it(
    url: str, hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    scheduled(hf, manual, overlap="wait")
    for number in range(1, 7):
        clock.advance(QUARTER)
        slot_at = START + number * QUARTER
        barrier = threading.Barrier(6)

        def by_hand(slot_at: datetime = slot_at, barrier: threading.Barrier = barrier) -> int:
            barrier.wait()
            try:
                hf.schedules.trigger("ingest", scheduled_for=slot_at)
            except SlotTaken:
                return 0
            return 1

        with another(url, clock) as table, ThreadPoolExecutor(6) as pool:
            hands = [pool.submit(by_hand) for _ in range(5)]
            barrier.wait()
            by_clock = table.keep(clock.now())
            assert sum(hand.result() for hand in hands) + by_clock == 1
    assert database.count("runs") == database.count("slots") == 6
    assert hf.verify() == []


@pytest.mark.contract("J7", "J11")
def test_of_eight_hands_at_eight_slots_only_one_gets_past_the_overlap_policy(hf: Holdfast, manual: Manual) -> None:
    scheduled(hf, manual)
    assert one_of_eight_hands(hf) == 1


def one_of_eight_hands(hf: Holdfast) -> int:
    barrier = threading.Barrier(8)

    def by_hand(number: int) -> bool:
        barrier.wait()
        try:
            hf.schedules.trigger("ingest", scheduled_for=START - number * QUARTER)
        except StillRunning:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(by_hand, range(8)))


@pytest.mark.contract("J11")
def test_a_process_without_the_code_can_trigger_and_the_run_is_the_same(
    url: str, hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, max_runtime=77)
    with Holdfast(url, clock=clock) as bare:
        run = bare.schedules.trigger("ingest", scheduled_for=START - DAY)
        [standing] = bare.schedules.list()
        assert standing.next_at == START + QUARTER
        assert [slot.outcome for slot in bare.schedules.slots("ingest", next=2)] == ["queued", "upcoming", "upcoming"]
    assert (run.snapshot.queue, run.snapshot.key, run.snapshot.policy.timeout) == (
        "default",
        "schedule:ingest",
        timedelta(seconds=77),
    )
    manual.run_all()
    assert hf.get(run.id).result(timeout=0) == "2025-12-31T00:00:00+00:00"


@pytest.mark.contract("J1", "J11")
def test_a_process_without_a_worker_writes_a_schedule_down_and_keeps_no_slot_of_it(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    """A web process may name a schedule of its code before any worker has started; time alone moves nothing there."""
    hf.schedule("*/15 * * * *", name="ingest")(lambda: None)
    hf.schedules.pause("ingest", note="not yet")
    hf.schedules.resume("ingest")
    hf.schedules.trigger("ingest", scheduled_for=START)
    clock.advance(DAY)
    assert (hf.schedules.list()[0].considered_at, database.count("slots")) == (START, 1)


@pytest.mark.contract("S4", "J11")
@pytest.mark.parametrize(
    "bad",
    [
        datetime(2026, 1, 1),  # noqa: DTZ001 - that is what is wrong with it
        "2026-01-01",
        None,
        datetime(1969, 12, 31, tzinfo=UTC),
        datetime(2032, 1, 1, tzinfo=UTC),
    ],
)
def test_what_is_no_slot_is_refused(hf: Holdfast, database: Database, ingest: Any, bad: Any) -> None:
    with pytest.raises(InvalidPolicy, match="slot"):
        hf.schedules.trigger("ingest", scheduled_for=bad)
    assert database.count("slots") == database.count("runs") == 0


@pytest.mark.contract("S4")
def test_an_unknown_schedule_is_refused_by_every_verb(hf: Holdfast) -> None:
    for verb in (
        lambda: hf.schedules.slots("nothing"),
        lambda: hf.schedules.trigger("nothing", scheduled_for=START),
        lambda: hf.schedules.pause("nothing"),
        lambda: hf.schedules.resume("nothing"),
    ):
        with pytest.raises(ScheduleNotFound):
            verb()


# Schedules that change, go away, or were not looked after


@pytest.mark.contract("J5")
def test_a_changed_expression_is_taken_over_and_older_code_leaves_it_alone(
    url: str, hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, "0 * * * *", overlap="wait")
    with another(url, clock, when="30 * * * *") as newer:
        newer.keep(clock.now())
        assert hf.schedules.list()[0].trigger == "30 * * * * UTC"
        clock.advance(timedelta(minutes=30))
        assert (manual.schedule(), newer.keep(clock.now())) == (0, 1)
        clock.advance(timedelta(minutes=30))
        assert (manual.schedule(), newer.keep(clock.now())) == (0, 0)
    assert told(hf) == ["00:30 queued"]


@pytest.mark.contract("J5")
def test_a_changed_expression_counts_from_then_on(url: str, hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    """What was due before is due by the expression of then; no slot that no one ever waited for is run or missed."""
    scheduled(hf, manual, "0 3 * * *", catch_up="latest")
    clock.advance(3 * HOUR)
    manual.run_all()
    clock.advance(12 * HOUR)
    with another(url, clock, when="0 6 * * *", catch_up="latest") as newer:
        assert newer.keep(clock.now()) == 0
        clock.advance(15 * HOUR)
        assert newer.keep(clock.now()) == 1
    assert told(hf) == ["03:00 ran", "06:00 queued"]
    clock.advance(DAY)
    with another(url, clock, seed=8, when="0 9 * * *", catch_up="latest") as newest:
        assert newest.keep(clock.now()) == 1, "due by the expression before, while no one was there"
    assert told(hf) == ["03:00 ran", "06:00 queued", "06:00 queued"]


@pytest.mark.contract("J5", "S3")
def test_older_code_goes_on_when_the_newer_is_gone(url: str, hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    scheduled(hf, manual, "0 * * * *", overlap="wait")
    with another(url, clock, when="30 * * * *") as newer:
        newer.keep(clock.now())
    clock.advance(HOUR)

    assert manual.schedule() == 1, "no one has looked after the half hour, so the newer code is gone"
    assert told(hf) == ["01:00 queued"]


def test_a_schedule_whose_code_is_gone_stays_and_says_when_it_was_last_known(
    url: str, hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    clock.advance(QUARTER)
    manual.run_all()
    del hf.scheduled["ingest"]
    clock.advance(DAY)
    manual.run_all()
    [standing] = hf.schedules.list()
    assert (standing.seen_at, standing.last and standing.last.outcome) == (START + QUARTER, "ran")
    assert told(hf) == ["00:15 ran"]


def test_a_schedule_that_is_seldom_due_is_seen_every_hour(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    scheduled(hf, manual, "0 0 1 1 *")
    clock.advance(HOUR)
    manual.schedule()
    assert hf.schedules.list()[0].seen_at == clock.now()
    assert hf.schedules.list()[0].considered_at == START


@pytest.mark.contract("J10")
def test_after_a_year_of_absence_the_work_is_bounded_and_what_was_passed_over_is_told(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    scheduled(hf, manual, "* * * * *", catch_up="latest")
    clock.advance(365 * DAY + timedelta(minutes=10, seconds=1))

    assert manual.schedule() == 1000

    assert database.all("select state, count(*) from holdfast_slots group by state order by state") == [
        ("claimed", 1),
        ("coalesced", 4),
        ("missed", 995),
    ]
    [(data,)] = database.all("select data from holdfast_events where kind = 'SLOTS_PASSED'")
    assert '"after":"2026-01-01T00:00:00+00:00"' in data
    assert manual.run_all() == 1


@pytest.mark.contract("J3")
def test_jitter_delays_a_run_by_an_amount_that_follows_from_its_slot(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    job = scheduled(hf, manual, jitter=600, overlap="wait")
    known = hf.scheduled[job.name]
    delays = {known.starts_at(START + number * QUARTER) - (START + number * QUARTER) for number in range(50)}
    assert len(delays) == 50
    assert all(timedelta(0) <= delay < timedelta(seconds=600) for delay in delays)

    clock.advance(QUARTER)
    assert manual.run_all() == 0
    [slot] = hf.schedules.slots("ingest", next=0)
    assert hf.snapshot(slot.run_id or "").due_at == known.starts_at(START + QUARTER)
    clock.step(known.starts_at(START + QUARTER) - clock.now())
    assert manual.run_all() == 1


def test_a_trigger_that_fails_stops_no_other_schedule(
    hf: Holdfast, manual: Manual, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
            raise RuntimeError("no calendar here")

    hf.schedule(Broken(), name="broken")(lambda: None)
    scheduled(hf, manual)
    clock.advance(QUARTER)
    assert manual.run_all() == 1
    assert "schedule broken can't be considered" in caplog.text


@pytest.mark.contract("J2", "J3")
def test_a_worker_that_lost_its_name_schedules_nothing(hf: Holdfast, clock: FakeClock, manual: Manual) -> None:
    """Each slot is claimed under the name of its scheduler, in the same transaction."""
    scheduled(hf, manual)
    clock.advance(QUARTER)
    unregistered = Worker(hf, exclusive="ingesting")
    table = Timetable(hf.store, hf.scheduled, guard=unregistered._guard)
    with pytest.raises(WorkerExists):
        table.keep(clock.now())
    assert told(hf) == []


def test_time_that_goes_by_between_two_slots_costs_no_transaction(
    hf: Holdfast, clock: FakeClock, manual: Manual, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduled(hf, manual)
    hf.schedule("0 4 * * *", name="nightly")(lambda: None)
    table = Timetable(hf.store, hf.scheduled)
    table.keep(clock.now())
    assert table.next_at() == START + QUARTER
    done: list[datetime] = []
    do = hf.store.do

    def counted(verb: Any) -> Any:
        done.append(clock.now())
        return do(verb)

    monkeypatch.setattr(hf.store, "do", counted)

    for _ in range(29 * 60):
        clock.advance(1)
        table.keep(clock.now())

    assert done == [START + QUARTER]


@pytest.mark.contract("J10")
def test_who_hears_that_a_schedule_was_resumed_looks_at_once(hf: Holdfast, clock: FakeClock, manual: Manual) -> None:
    scheduled(hf, manual, catch_up="latest")
    table = Timetable(hf.store, hf.scheduled)
    orchestrator = Orchestrator(hf.store, hf.settings, clock, look=lambda: PULSE, timetable=table)
    leave = hf.wakeups.listen(orchestrator.heard)
    hf.schedules.pause("ingest")
    clock.advance(QUARTER + timedelta(minutes=10))
    orchestrator.tick()
    assert told(hf) == []

    hf.schedules.resume("ingest")

    assert orchestrator.bell.wait(0)
    assert 0 < orchestrator.tick() <= 1
    assert told(hf) == ["00:15 queued"]
    leave()


@pytest.mark.contract("P9")
def test_many_schedules_at_one_moment_are_kept_in_rounds(hf: Holdfast, clock: FakeClock, manual: Manual) -> None:
    for number in range(120):
        hf.schedule(every=60, name=f"s{number:03}")(lambda: None)
    table = Timetable(hf.store, hf.scheduled)
    assert (table.keep(clock.now()), table.keep(clock.now())) == (0, 0)
    clock.advance(60)
    assert [table.keep(clock.now()) for _ in range(3)] == [100, 20, 0]


# What a person sees


@pytest.mark.contract("J3", "J7")
def test_why_names_the_slot_and_the_earlier_one_that_still_runs(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    scheduled(hf, manual, overlap="wait", max_runtime=DAY)
    clock.advance(QUARTER)
    manual.orchestrate()
    [first] = manual.worker("w").claim()
    second = hf.schedules.trigger("ingest", scheduled_for=START + DAY)
    manual.promote()

    assert hf.why(first.lease.run_id).reasons[-1] == "it is slot 2026-01-01T00:15:00Z of schedule ingest"
    assert hf.why(second.id).reasons[-2:] == (
        "it is slot 2026-01-02T00:00:00Z of schedule ingest, claimed by hand",
        f"slot 2026-01-01T00:15:00Z (run {first.lease.run_id}) has not ended; no two runs of ingest overlap",
    )


def test_the_last_and_next_slots_can_be_listed(hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any) -> None:
    for _ in range(5):
        clock.advance(QUARTER)
        manual.run_all()
    assert told(hf, last=2, next=3) == ["01:00 ran", "01:15 ran", "01:30 upcoming", "01:45 upcoming", "02:00 upcoming"]
    assert told(hf, last=0, next=1) == ["01:30 upcoming"]
    assert all(isinstance(slot, Slot) for slot in hf.schedules.slots("ingest"))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("delete from holdfast_slots where state = 'claimed'", "run_without_slot"),
        ("update holdfast_slots set run_id = 'nobody' where state = 'claimed'", "slot_without_run"),
        ("update holdfast_slots set run_id = null where state = 'claimed'", "slot_without_run"),
        ("update holdfast_slots set into_at = slot_at where state = 'coalesced'", None),
        ("delete from holdfast_slots where state = 'claimed'", "slot_into_nothing"),
    ],
)
def test_verify_finds_slots_that_do_not_fit_their_runs(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, damage: str, problem: str | None
) -> None:
    scheduled(hf, manual, misfire_grace=HOUR)
    clock.advance(HOUR)
    manual.run_all()
    assert hf.verify() == []
    database.run(damage)
    found = {finding.problem for finding in hf.verify()}
    assert problem in found if problem else found == set()


# What can be scheduled


@pytest.mark.contract("J10", "S4")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"when": "* * * * *", "every": 60},
        {"when": "61 * * * *"},
        {"when": "* * * * *", "tz": "Nowhere/Never"},
        {"when": 17},
        {"every": 0.1},
        {"every": "soon"},
        {"every": 60, "overlap": "queue"},
        {"every": 60, "catch_up": "all"},
        {"every": 60, "catch_up": -5},
        {"every": 60, "misfire_grace": 0},
        {"every": 60, "jitter": -1},
        {"every": 60, "max_instances": 0},
        {"every": 60, "max_runtime": -1},
        {"every": 60, "queue": ""},
    ],
    ids=str,
)
def test_a_schedule_that_makes_no_sense_is_refused_when_it_is_written(hf: Holdfast, options: dict[str, Any]) -> None:
    when = [options["when"]] if "when" in options else []
    with pytest.raises(InvalidPolicy):
        hf.schedule(*when, **{name: value for name, value in options.items() if name != "when"})(lambda: None)
    assert hf.scheduled == {}


@pytest.mark.contract("S4")
def test_a_job_that_a_slot_can_not_fill_is_refused(hf: Holdfast) -> None:
    def needs_more(document: str) -> None: ...

    def odd(scheduled_for: int) -> None: ...

    for fn in (needs_more, odd):
        with pytest.raises(InvalidPolicy, match="can't be scheduled"):
            hf.schedule(every=60)(fn)
    keyed = hf.job(name="keyed", key=lambda: "x")(lambda: None)
    pipeline = hf.pipeline("pipeline")
    for more in (pipeline, pipeline.stage(name="stage")(lambda: None)):
        with pytest.raises(InvalidPolicy, match="can't be scheduled"):
            hf.schedule("* * * * *")(more)
    with pytest.raises(InvalidPolicy, match="key of its own"):
        hf.schedule(every=60)(keyed)
    once = hf.schedule(every=60)(hf.job(name="once")(lambda: None))
    with pytest.raises(InvalidPolicy, match="has a schedule already"):
        hf.schedule(every=30)(once)
    with pytest.raises(InvalidPolicy, match="where the job is defined"):
        hf.schedule(every=60, queue="q")(hf.job(name="placed")(lambda: None))


@pytest.mark.contract("J3", "J10")
def test_a_schedule_can_be_put_on_an_existing_job(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
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
    assert (policy.max_attempts, policy.on_crash, policy.on_shutdown, policy.audit) == (1, "fail", "fail", True)
    assert policy.timeout == timedelta(seconds=30)


def test_the_defaults_are_those_that_are_promised(hf: Holdfast) -> None:
    hf.schedule(every=60, name="plain")(lambda: None)
    plain = hf.scheduled["plain"]
    assert (plain.coalesce, plain.misfire_grace, plain.max_instances) == (True, timedelta(seconds=300), 1)
    assert (plain.catch_up, plain.overlap, plain.jitter) == ("none", "skip", None)


# With a real worker


@pytest.mark.contract("J3", "J5")
def test_a_worker_wakes_for_each_slot_and_not_only_at_its_tick(url: str) -> None:
    """The tick is 5 s; the slots are a second apart."""
    enough = threading.Event()
    delays: list[timedelta] = []
    with Holdfast(url, tick=5, lease=15) as engine:

        @engine.schedule(every=1)
        def beat(scheduled_for: datetime) -> None:
            delays.append(engine.clock.now() - scheduled_for)
            if len(delays) == 3:
                enough.set()

        with engine.worker():
            assert enough.wait(20)
        assert engine.verify() == []
    assert sorted(delays)[0] < timedelta(seconds=0.5), delays


@pytest.mark.contract("J3", "S5")
def test_a_worker_that_shuts_down_in_the_middle_of_a_slot_fails_its_run(live: Holdfast) -> None:
    began = threading.Event()

    @live.schedule(every=1, name="ingest", max_runtime=60)
    def endless() -> None:
        began.set()
        threading.Event().wait(10)

    worker = live.worker()
    worker.start()
    assert began.wait(20)
    worker.stop(grace=timedelta(0))

    first = next(slot for slot in live.schedules.slots("ingest", next=0) if slot.run_id is not None)
    assert first.outcome == "failed"
    assert first.error is not None
    assert "its worker shuts down" in first.error
