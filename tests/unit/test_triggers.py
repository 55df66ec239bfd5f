"""Triggers: the slots of a schedule are correct across every clock change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from apscheduler.triggers.calendarinterval import CalendarIntervalTrigger
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.schedules import triggers
from holdfast.schedules.triggers import Adapted, Cron, Described, Every, Trigger
from holdfast.support.errors import InvalidPolicy

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns"]
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

# The instants at which the clocks of these zones change, by an hour or half an hour, forwards or back.
CHANGES = {
    "Europe/Berlin": [datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)],
    "America/New_York": [datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)],
    "Australia/Lord_Howe": [datetime(2026, 4, 4, 15, tzinfo=UTC), datetime(2026, 10, 3, 15, 30, tzinfo=UTC)],
    "America/St_Johns": [datetime(2026, 3, 8, 5, 30, tzinfo=UTC), datetime(2026, 11, 1, 4, 30, tzinfo=UTC)],
}


def slots(trigger: Trigger, after: datetime, until: datetime) -> list[datetime]:
    found, _ = triggers.between(trigger, after, until, most=100_000)
    return found


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# Cron and clock changes


@pytest.mark.contract("J5")
@pytest.mark.parametrize(
    ("expression", "tz", "day", "expected"),
    [
        # 02:00 → 03:00 on 29 March in Berlin: 02:30 does not exist, so its slot is at 03:00.
        ("30 2 * * *", "Europe/Berlin", "2026-03-29", ["01:00"]),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28", ["01:30"]),
        ("0,30 2 * * *", "Europe/Berlin", "2026-03-29", ["01:00"]),
        ("0 2,3 * * *", "Europe/Berlin", "2026-03-29", ["01:00"]),
        # 03:00 → 02:00 on 25 October: 02:30 occurs twice, but only the first has a slot.
        ("30 2 * * *", "Europe/Berlin", "2026-10-25", ["00:30"]),
        ("30 1,2,3 * * *", "Europe/Berlin", "2026-10-25", ["00:30", "02:30"]),
        # New York: 02:00 → 03:00 on 8 March, 02:00 → 01:00 on 1 November.
        ("15 2 * * *", "America/New_York", "2026-03-08", ["07:00"]),
        ("15 1 * * *", "America/New_York", "2026-11-01", ["05:15"]),
        # Lord Howe changes by half an hour: 02:00 → 01:30 on 5 April, 02:00 → 02:30 on 4 October.
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04", ["14:45"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03", ["15:30"]),
        # Any other expression has a slot whenever the local time matches: a repeated time has two, a skipped one none.
        ("0 * * * *", "Europe/Berlin", "2026-10-25", [f"{hour:02}:00" for hour in range(24)]),
        ("0 */2 * * *", "Europe/Berlin", "2026-10-24", [f"{hour:02}:00" for hour in range(0, 24, 2)]),
        ("*/30 2 * * *", "Europe/Berlin", "2026-10-25", ["00:00", "00:30", "01:00", "01:30"]),
        ("*/30 2 * * *", "Europe/Berlin", "2026-03-29", []),
        ("*/10 2 * * *", "Australia/Lord_Howe", "2026-04-04", ["15:30", "15:40", "15:50", "16:00", "16:10", "16:20"]),
        ("*/10 2 * * *", "Australia/Lord_Howe", "2026-10-03", ["15:30", "15:40", "15:50"]),
    ],
)
def test_cron_slots_are_correct_on_days_when_the_clocks_change(
    expression: str, tz: str, day: str, expected: list[str]
) -> None:
    begin = at(f"{day} 00:00")
    found = slots(Cron(expression, tz), begin - timedelta(seconds=1), begin + DAY - timedelta(seconds=1))
    assert [slot.strftime("%H:%M") for slot in found] == expected


@pytest.mark.contract("J5")
@pytest.mark.parametrize("tz", ZONES)
def test_a_daily_schedule_has_one_slot_on_every_local_day_of_two_years(tz: str) -> None:
    for expression in ("30 2 * * *", "0 0 * * *", "59 1 * * *"):
        found = slots(Cron(expression, tz), at("2025-12-31 20:00"), at("2027-12-31 20:00"))
        days = [slot.astimezone(ZoneInfo(tz)).date() for slot in found]
        assert len(set(days)) == len(days)
        assert {b - a for a, b in pairwise(days)} == {DAY}


# Compared with a simple check of every minute

numbers = st.lists(st.integers(0, 59), min_size=1, max_size=5, unique=True)
hours = st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True)
near = st.sampled_from([(zone, change) for zone, changes in CHANGES.items() for change in changes])
shift = st.integers(-4 * 3600, 3 * 3600).map(lambda seconds: timedelta(seconds=seconds))


def local(instant: datetime, tz: str) -> datetime:
    return instant.astimezone(ZoneInfo(tz))


def minutes_from(start: datetime, until: datetime) -> list[datetime]:
    first = start.replace(second=0, microsecond=0)
    return [
        one for count in range(int((until - first) / MINUTE) + 1) if start < (one := first + count * MINUTE) <= until
    ]


@pytest.mark.contract("J5")
@settings(deadline=None)
@given(near=near, shift=shift, step=st.sampled_from([1, 2, 5, 7, 15, 20, 30]), hour=st.one_of(st.none(), hours))
def test_interval_schedules_follow_the_local_wall_clock(
    near: tuple[str, datetime], shift: timedelta, step: int, hour: list[int] | None
) -> None:
    tz, change = near
    start, until = change + shift, change + timedelta(hours=8)
    expression = f"*/{step} {'*' if hour is None else ','.join(map(str, hour))} * * *"

    expected = [
        one
        for one in minutes_from(start, until)
        if local(one, tz).minute % step == 0 and (hour is None or local(one, tz).hour in hour)
    ]

    assert slots(Cron(expression, tz), start, until) == expected


@pytest.mark.contract("J5")
@settings(deadline=None)
@given(near=near, shift=shift, minutes=numbers, hour=hours)
def test_fixed_times_have_one_slot_a_day_at_their_local_time(
    near: tuple[str, datetime], shift: timedelta, minutes: list[int], hour: list[int]
) -> None:
    """Checks every minute: a repeated time has a slot only once, and a skipped time has one right afterwards."""
    tz, change = near
    begin, start, until = change - DAY, change + shift, change + timedelta(hours=8)
    wanted: list[datetime] = []
    seen: set[datetime] = set()
    before = None
    for one in minutes_from(begin, until):
        wall = local(one, tz).replace(tzinfo=None)
        skipped: list[datetime] = [] if before is None else minutes_between(before, wall)
        before = wall
        fresh = [time for time in (*skipped, wall) if time not in seen]
        seen.update(fresh)
        if any(time.minute in minutes and time.hour in hour for time in fresh):
            wanted.append(one)

    found = slots(Cron(f"{','.join(map(str, minutes))} {','.join(map(str, hour))} * * *", tz), start, until)

    assert found == [one for one in wanted if one > start]


def minutes_between(low: datetime, high: datetime) -> list[datetime]:
    return [low + count * MINUTE for count in range(1, int((high - low) / MINUTE))]


@pytest.mark.contract("J5")
@settings(deadline=None)
@given(
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "UTC", "Asia/Kathmandu"]),
    expression=st.sampled_from(["5 4 * * *", "0 0 1 * *", "30 2 * * 0", "*/7 * * * *", "0 12 29 2 *", "15 1 L * *"]),
    start=st.integers(0, 15 * 366 * 86_400).map(
        lambda seconds: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    ),
)
def test_slots_match_cronsim_where_a_zone_changes_by_whole_hours(zone: str, expression: str, start: datetime) -> None:
    cronsim_slots = (slot.astimezone(UTC) for slot in CronSim(expression, start.astimezone(ZoneInfo(zone))))
    after = Cron(expression, zone).after(start)
    assert after == next(slot for slot in cronsim_slots if slot > start)


@pytest.mark.contract("J3", "J5")
@settings(deadline=None)
@given(
    trigger=st.sampled_from(
        [
            *(
                Cron(expression, zone)
                for zone in CHANGES
                for expression in ("*/15 * * * *", "30 2 * * *", "0 1-3 * * *")
            ),
            Cron("*/20 * * * * *", "Europe/Berlin"),
            Every(timedelta(minutes=7)),
            Every(timedelta(seconds=1.5)),
            Adapted(CronTrigger.from_crontab("*/15 * * * *", timezone="Europe/Berlin")),
        ]
    ),
    near=near,
    shift=shift,
    microseconds=st.integers(0, 999_999),
)
def test_slots_increase_strictly_and_do_not_depend_on_the_starting_time(
    trigger: Trigger, near: tuple[str, datetime], shift: timedelta, microseconds: int
) -> None:
    start = near[1] + shift + timedelta(microseconds=microseconds)
    found = list(islice(triggers._forward(trigger, start, start + 30 * DAY), 40))

    assert found
    assert all(slot.tzinfo is UTC for slot in found)
    assert found[0] > start
    assert all(a < b for a, b in pairwise(found))
    for before, slot in pairwise(found):
        halfway = before + (slot - before) / 2
        assert trigger.after(halfway) == slot
        assert trigger.after(slot - timedelta(microseconds=1)) == slot


# Past slots


@settings(deadline=None)
@given(
    trigger=st.sampled_from([Cron("*/3 * * * *", "Europe/Berlin"), Every(timedelta(seconds=90)), Cron("0 5 * * 1")]),
    length=st.integers(0, 200_000).map(lambda seconds: timedelta(seconds=seconds)),
    most=st.sampled_from([1, 7, 1000]),
)
def test_the_latest_of_many_slots_are_found_without_visiting_all(
    trigger: Trigger, length: timedelta, most: int
) -> None:
    until = at("2026-10-26 03:17")
    everything = list(triggers._forward(trigger, until - length, until))
    assert triggers.between(trigger, until - length, until, most=most) == (everything[-most:], len(everything) > most)


def test_finding_the_last_slots_of_ten_years_visits_only_a_few_slots() -> None:
    class Counting:
        calls = 0

        def after(self, instant: datetime) -> datetime | None:
            self.calls += 1
            return Cron("* * * * *").after(instant)

    trigger = Counting()
    found, more = triggers.between(trigger, at("2016-01-01 00:00"), at("2026-01-01 00:00"), most=1000)

    assert (len(found), found[-1], more) == (1000, at("2026-01-01 00:00"), True)
    assert trigger.calls < 6000


# The other triggers


def test_every_counts_from_the_unix_epoch_in_utc() -> None:
    assert Every(timedelta(minutes=15)).after(at("2026-01-01 10:00:01")) == at("2026-01-01 10:15")
    assert Every(timedelta(minutes=15)).after(at("2026-01-01 10:15")) == at("2026-01-01 10:30")
    assert Every(timedelta(days=1)).after(at("1969-12-31 12:00")) == at("1970-01-01 00:00")


@pytest.mark.parametrize(
    ("apscheduler_trigger", "expected"),
    [
        (CronTrigger.from_crontab("0 */6 * * *", timezone="UTC"), ["06:00", "12:00", "18:00"]),
        (IntervalTrigger(hours=5, start_date="2026-01-01 00:00:00", timezone="UTC"), ["05:00", "10:00", "15:00"]),
        (IntervalTrigger(hours=5, start_date="2026-01-01 03:00:00", timezone="UTC"), ["03:00", "08:00", "13:00"]),
        (DateTrigger("2026-01-01 09:30:00", timezone="UTC"), ["09:30"]),
        (DateTrigger("2025-01-01 09:30:00", timezone="UTC"), []),
        (
            OrTrigger([CronTrigger(hour=4, timezone="UTC"), CronTrigger(hour=7, minute=5, timezone="UTC")]),
            ["04:00", "07:05", "04:00"],
        ),
        (CalendarIntervalTrigger(days=2, hour=6, start_date="2025-06-02", timezone="UTC"), ["06:00", "06:00", "06:00"]),
    ],
    ids=["cron", "interval", "interval that begins later", "date", "date gone by", "or", "calendar"],
)
def test_apscheduler_triggers_can_be_used(apscheduler_trigger: triggers.FireTimes, expected: list[str]) -> None:
    found = islice(triggers._forward(Adapted(apscheduler_trigger), at("2026-01-01 00:00"), at("2036-01-01 00:00")), 3)
    assert [slot.strftime("%H:%M") for slot in found] == expected


def test_a_trigger_that_does_not_advance_raises_an_error_instead_of_looping() -> None:
    class Stuck:
        def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
            return at("2020-01-01 00:00")

    with pytest.raises(InvalidPolicy, match="does not advance"):
        Adapted(Stuck()).after(at("2026-01-01 00:00"))


@pytest.mark.parametrize("trigger", [Cron("*/5 * * * *", "Europe/Berlin"), Every(timedelta(seconds=90))])
def test_a_stored_trigger_comes_back_unchanged(trigger: Trigger) -> None:
    assert triggers.load(triggers.dump(trigger)) == trigger


def test_a_stored_custom_trigger_comes_back_as_its_description() -> None:
    stored = triggers.dump(Adapted(DateTrigger("2026-01-01 09:30:00", timezone="UTC")))
    described = triggers.load(stored)
    assert described == Described("date[2026-01-01 09:30:00 UTC]")
    assert described.after(at("2020-01-01 00:00")) is None
    assert isinstance(triggers.load({"cron": "bad", "tz": "UTC"}), Described)


@pytest.mark.parametrize(
    ("nickname", "fields"), [("@hourly", "0 * * * *"), (" @Daily ", "0 0 * * *"), ("@weekly", "0 0 * * 0")]
)
def test_a_cron_nickname_stands_for_its_fields(nickname: str, fields: str) -> None:
    assert Cron(nickname, "Europe/Berlin") == Cron(fields, "Europe/Berlin")
    assert triggers.dump(Cron(nickname)) == {"cron": fields, "tz": "UTC"}


def test_an_unknown_cron_nickname_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidPolicy, match=r"'@reboot' is not a cron nickname: write @yearly, .*, or five fields"):
        Cron("@reboot")


@pytest.mark.parametrize(
    ("seconds", "words"), [(5, "5 s"), (1.5, "1.5 s"), (90, "1 min 30 s"), (3600, "1 h"), (90_000, "1 d 1 h")]
)
def test_an_interval_is_written_in_ordinary_units(seconds: float, words: str) -> None:
    assert str(Every(timedelta(seconds=seconds))) == f"every {words}"


def test_a_trigger_is_described_in_words() -> None:
    assert triggers.in_words(Cron("0 6 * * 1-5", "Europe/Berlin")) == "At 06:00 on Monday through Friday, Europe/Berlin"
    assert triggers.in_words(Cron("@daily")) == "At 00:00 every day, UTC"
    assert triggers.in_words(Every(timedelta(minutes=5))) == "every 5 min"
    assert triggers.in_words(Described("cron[hour='6']")) == "cron[hour='6']"
