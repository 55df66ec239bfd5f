"""Triggers: when a schedule is due. A trigger returns the first slot after an instant, in UTC, and reads no clock.

The same trigger gives the same slots in every process and at any time, so all processes agree on a slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import takewhile
from typing import Any, Protocol, runtime_checkable
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from holdfast.support.clock import EPOCH
from holdfast.support.errors import InvalidPolicy
from holdfast.values.rates import rate_in_words

SECOND, DAY, WEEK = timedelta(seconds=1), timedelta(days=1), timedelta(weeks=1)
FAR = 50  # after this many years without a slot, a cron expression counts as having no more
CHAIN = 100_000  # at most this many fire times of an APScheduler trigger are read to reach an instant

# Cron's nicknames, and the fields that they stand for.
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Trigger(Protocol):
    def after(self, instant: datetime) -> datetime | None:
        """Return the first slot after this instant, in UTC, or None if there is none."""
        ...


@runtime_checkable
class FireTimes(Protocol):
    """The interface of APScheduler's triggers."""

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None: ...


@dataclass(frozen=True)
class Every:
    """An interval, counted from 1970-01-01 00:00 UTC, so that all processes agree and a restart shifts nothing."""

    interval: timedelta

    def __post_init__(self) -> None:
        if not SECOND <= self.interval <= 3660 * DAY:
            raise InvalidPolicy(f"every={self.interval} must be between a second and ten years")

    def after(self, instant: datetime) -> datetime | None:
        return EPOCH + ((instant - EPOCH) // self.interval + 1) * self.interval

    def __str__(self) -> str:
        return f"every {rate_in_words(self.interval)}"


@dataclass(frozen=True)
class Cron:
    """A cron expression of five fields (or six, with seconds first, or a nickname like @daily) in a time zone.

    When clocks change, cron's own rules apply. An expression with fixed times (five fields, no star in minute and hour)
    runs once: a time that is skipped runs right after the change, and a time that is repeated runs the first time only.
    Any other expression follows real time: a time that does not exist does not run, and a time that is repeated runs
    twice.
    """

    expression: str
    tz: str = "UTC"

    def __post_init__(self) -> None:
        if self.expression.strip().startswith("@"):
            object.__setattr__(self, "expression", _fields_of(self.expression))
        try:
            next(CronSim(self.expression, datetime(2000, 1, 1)))  # noqa: DTZ001 - a wall clock without a zone
        except (CronSimError, ValueError, AttributeError, AssertionError) as error:
            raise InvalidPolicy(f"{self.expression!r} is not a cron expression: {error}") from None
        except StopIteration:
            raise InvalidPolicy(f"{self.expression!r} matches no date") from None
        try:
            self._zone  # noqa: B018 - for its error
        except (ValueError, KeyError, OSError, TypeError) as error:
            raise InvalidPolicy(f"tz={self.tz!r} is not a time zone: {error}") from None

    def after(self, instant: datetime) -> datetime | None:
        return next(self.following(instant), None)

    def following(self, instant: datetime) -> Iterator[datetime]:
        """Yield all slots after an instant; this is faster than calling `after` for each."""
        # To know whether a fixed time is a repetition, start before the change of the clocks.
        repeats = self._fixed and self._offset(instant - DAY) != self._offset(instant)
        slots = self._from(instant.astimezone(UTC) - (DAY if repeats else timedelta(0)))
        last = instant
        for slot in slots:
            if slot > last:
                yield slot
                last = slot

    def __str__(self) -> str:
        return f"{self.expression} {self.tz}"

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.tz)

    @cached_property
    def _fixed(self) -> bool:
        fields = self.expression.split()
        return len(fields) == 5 and not any(field.startswith("*") for field in fields[:2])

    def _offset(self, instant: datetime) -> timedelta:
        return instant.astimezone(self._zone).utcoffset() or timedelta(0)

    def _from(self, start: datetime) -> Iterator[datetime]:
        """Yield slots from `start` on.

        cronsim evaluates the expression on a wall clock without a time zone, and we apply the zone, because cronsim's
        own handling of zones skips slots where the offset changes by half an hour.
        """
        matches: Iterator[datetime] = iter(())
        found: datetime | None = None
        passed: datetime | None = None
        for begin, end, offset in self._periods(start):
            wall, last = (begin + offset).replace(tzinfo=None), (end + offset).replace(tzinfo=None)
            if passed is not None and passed != wall and self._fixed:
                if found is not None and passed <= found < wall:
                    yield begin  # the clocks skipped the time of this slot
                wall = max(wall, passed)
            if found is None or found < wall or (passed is not None and wall < passed):
                matches = CronSim(self.expression, wall - SECOND)
                found = next(matches, None)
            while found is not None and found < last:
                yield found.replace(tzinfo=UTC) - offset
                found = next(matches, None)
            if found is None:
                return
            passed = last

    def _periods(self, start: datetime) -> Iterator[tuple[datetime, datetime, timedelta]]:
        """Yield periods in which the zone's offset does not change, with that offset."""
        begin = start
        while begin.year < min(start.year + FAR, 9990):
            offset, end = self._offset(begin), begin + WEEK
            if self._offset(end) != offset:
                end = self._change(begin, end)
            yield begin, end, offset
            begin = end

    def _change(self, low: datetime, high: datetime) -> datetime:
        """Return the second between these two at which the offset changes."""
        offset, low, high = self._offset(low), low.replace(microsecond=0), high.replace(microsecond=0)
        while high - low > SECOND:
            middle = low + (high - low) // (2 * SECOND) * SECOND
            low, high = (middle, high) if self._offset(middle) == offset else (low, middle)
        return high


@dataclass(frozen=True)
class Adapted:
    """A trigger of APScheduler, or any object with `get_next_fire_time`.

    It must give the same times in every process: it must not be random, and an interval needs a fixed start date.
    """

    trigger: FireTimes

    def __post_init__(self) -> None:
        if not isinstance(self.trigger, FireTimes):
            raise InvalidPolicy(
                f"{self.trigger!r} is not a trigger: give a cron expression, every=…, or an object with "
                "get_next_fire_time"
            )
        if getattr(self.trigger, "jitter", None):
            raise InvalidPolicy(
                "the jitter of an APScheduler trigger gives each process different slots; use the schedule's jitter=…"
            )

    def after(self, instant: datetime) -> datetime | None:
        now = instant + timedelta(microseconds=1)
        found = self.trigger.get_next_fire_time(None, now)
        for _ in range(CHAIN):
            if found is None or found > instant:
                return None if found is None else found.astimezone(UTC)
            later = self.trigger.get_next_fire_time(found, now)
            if later is not None and later <= found:
                break
            found = later
        raise InvalidPolicy(
            f"trigger {self.trigger} does not advance, or does not reach {instant} within {CHAIN:,} steps"
        )

    def __str__(self) -> str:
        return str(self.trigger)


@dataclass(frozen=True)
class Described:
    """A stored trigger whose code this process does not have. It has a description, and is never due."""

    text: str

    def after(self, instant: datetime) -> datetime | None:
        return None

    def __str__(self) -> str:
        return self.text


def in_words(trigger: Trigger) -> str:
    """Describe a trigger in plain English: 'At 06:00 on Monday through Friday, Europe/Berlin'."""
    if not isinstance(trigger, Cron):
        return str(trigger)
    text = CronSim(trigger.expression, datetime(2000, 1, 1)).explain()  # noqa: DTZ001 - a wall clock without a zone
    return f"{text}, {trigger.tz}"


def between(trigger: Trigger, after: datetime, until: datetime, *, most: int) -> tuple[list[datetime], bool]:
    """Return the slots in (after, until], oldest first: at most the latest `most`, and whether any were left out.

    It searches back from `until` in growing periods, so a pause of a year costs no more than one of a day.
    """
    period = timedelta(minutes=1)
    while True:
        begin = max(after, until - period)
        slots = list(_forward(trigger, begin, until))
        if len(slots) > most:
            return slots[-most:], True
        if begin == after:
            return slots, False
        period *= 2


def _forward(trigger: Trigger, after: datetime, until: datetime) -> Iterator[datetime]:
    if isinstance(trigger, Cron):
        yield from takewhile(lambda slot: slot <= until, trigger.following(after))
        return
    slot = trigger.after(after)
    while slot is not None and slot <= until:
        yield slot
        slot = trigger.after(slot)


def _fields_of(nickname: str) -> str:
    try:
        return NICKNAMES[nickname.strip().lower()]
    except KeyError:
        raise InvalidPolicy(
            f"{nickname!r} is not a cron nickname: write {', '.join(NICKNAMES)}, or five fields"
        ) from None


def dump(trigger: Trigger) -> dict[str, Any]:
    """Return a trigger as it is stored, so that a process without its code can read it."""
    match trigger:
        case Cron(expression, tz):
            return {"cron": expression, "tz": tz}
        case Every(interval):
            return {"every": interval.total_seconds()}
        case other:
            return {"text": str(other)}


def load(stored: dict[str, Any]) -> Trigger:
    try:
        match stored:
            case {"cron": expression, "tz": tz}:
                return Cron(expression, tz)
            case {"every": seconds}:
                return Every(timedelta(seconds=seconds))
    except InvalidPolicy:
        pass  # stored by another version, or with a time zone that this host doesn't have
    return Described(str(stored.get("text", stored)))
