"""Triggers: when a schedule is due. Pure: each gives the first slot after an instant, in UTC, and knows no clock.

The same trigger gives the same slots in every process, whenever it is asked; that is what makes a slot canonical.
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
FAR = 50  # years without a slot after which there is none
CHAIN = 100_000  # how far a trigger that only knows the next one is followed

# What cron calls its own nicknames, as the fields they stand for.
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
        """The first slot later than this instant, in UTC; None if there is none."""
        ...


@runtime_checkable
class FireTimes(Protocol):
    """What APScheduler's triggers have."""

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None: ...


@dataclass(frozen=True)
class Every:
    """Every so often, counted from 1970-01-01 00:00 UTC: all processes agree, and a restart shifts nothing."""

    interval: timedelta

    def __post_init__(self) -> None:
        if not SECOND <= self.interval <= 3660 * DAY:
            raise InvalidPolicy(f"every={self.interval}: an interval is between a second and ten years")

    def after(self, instant: datetime) -> datetime | None:
        return EPOCH + ((instant - EPOCH) // self.interval + 1) * self.interval

    def __str__(self) -> str:
        return f"every {rate_in_words(self.interval)}"


@dataclass(frozen=True)
class Cron:
    """Five fields of cron (or six, with seconds first; or a nickname like @daily), by the wall clock of a time zone.

    When clocks change, cron's own rule holds. A schedule at fixed times (minute and hour both without a star) comes
    once: a time that is skipped comes when the clocks have been put forward, a time that is repeated comes the first
    time. A schedule of intervals (a star in minute or hour) goes by real time: what does not exist does not come, and
    what is repeated comes twice.
    """

    expression: str
    tz: str = "UTC"

    def __post_init__(self) -> None:
        if self.expression.strip().startswith("@"):
            object.__setattr__(self, "expression", _fields_of(self.expression))
        try:
            next(CronSim(self.expression, datetime(2000, 1, 1)))  # noqa: DTZ001 - a wall clock without a zone
        except (CronSimError, ValueError, AttributeError, AssertionError) as error:
            raise InvalidPolicy(f"{self.expression!r} is no cron expression: {error}") from None
        except StopIteration:
            raise InvalidPolicy(f"{self.expression!r}: that day never comes") from None
        try:
            self._zone  # noqa: B018 - asked for its error
        except (ValueError, KeyError, OSError, TypeError) as error:
            raise InvalidPolicy(f"tz={self.tz!r} is no time zone: {error}") from None

    def after(self, instant: datetime) -> datetime | None:
        return next(self.following(instant), None)

    def following(self, instant: datetime) -> Iterator[datetime]:
        """All slots after an instant; faster than asking for one after the other."""
        # Whether a fixed time is repeated can only be said from before the change.
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
        """Slots from `start` on. cronsim reads the expression on a wall clock without a zone; the zone is ours: its own
        steps over half an hour where a zone changes by that much."""
        matches: Iterator[datetime] = iter(())
        found: datetime | None = None
        passed: datetime | None = None
        for begin, end, offset in self._stretches(start):
            wall, last = (begin + offset).replace(tzinfo=None), (end + offset).replace(tzinfo=None)
            if passed is not None and passed != wall and self._fixed:
                if found is not None and passed <= found < wall:
                    yield begin  # its time was skipped
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

    def _stretches(self, start: datetime) -> Iterator[tuple[datetime, datetime, timedelta]]:
        """Pieces of time in which the zone's offset does not change."""
        begin = start
        while begin.year < min(start.year + FAR, 9990):
            offset, end = self._offset(begin), begin + WEEK
            if self._offset(end) != offset:
                end = self._change(begin, end)
            yield begin, end, offset
            begin = end

    def _change(self, low: datetime, high: datetime) -> datetime:
        """The second between these two in which the offset changes."""
        offset, low, high = self._offset(low), low.replace(microsecond=0), high.replace(microsecond=0)
        while high - low > SECOND:
            middle = low + (high - low) // (2 * SECOND) * SECOND
            low, high = (middle, high) if self._offset(middle) == offset else (low, middle)
        return high


@dataclass(frozen=True)
class Adapted:
    """Any object that knows its next time, such as a trigger of APScheduler. It must give every process the same times:
    no random part in it, and a start date where it counts from one."""

    trigger: FireTimes

    def __post_init__(self) -> None:
        if not isinstance(self.trigger, FireTimes):
            raise InvalidPolicy(
                f"{self.trigger!r} is no trigger: give a cron expression, every=…, or an object with get_next_fire_time"
            )
        if getattr(self.trigger, "jitter", None):
            raise InvalidPolicy("a trigger's own jitter gives each process other slots; use the schedule's jitter=…")

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
        raise InvalidPolicy(f"{self.trigger}: its times do not go on")

    def __str__(self) -> str:
        return str(self.trigger)


@dataclass(frozen=True)
class Described:
    """A trigger whose code is not here: what it says of itself, and no more."""

    text: str

    def after(self, instant: datetime) -> datetime | None:
        return None

    def __str__(self) -> str:
        return self.text


def in_words(trigger: Trigger) -> str:
    """As one would say it: 'At 06:00 on Monday through Friday, Europe/Berlin'."""
    if not isinstance(trigger, Cron):
        return str(trigger)
    said = CronSim(trigger.expression, datetime(2000, 1, 1)).explain()  # noqa: DTZ001 - a wall clock without a zone
    return f"{said}, {trigger.tz}"


def between(trigger: Trigger, after: datetime, until: datetime, *, most: int) -> tuple[list[datetime], bool]:
    """The slots in (after, until], oldest first; of more than `most` the latest, and whether any were left out.

    We look back from `until` in growing windows: a pause of a year costs no more than one of a day.
    """
    window = timedelta(minutes=1)
    while True:
        begin = max(after, until - window)
        found = list(_forward(trigger, begin, until))
        if len(found) > most:
            return found[-most:], True
        if begin == after:
            return found, False
        window *= 2


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
            f"{nickname!r} is no nickname of cron: write {', '.join(NICKNAMES)}, or five fields"
        ) from None


def dump(trigger: Trigger) -> dict[str, Any]:
    """A trigger as it is stored, so that a process without its code can read it."""
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
        pass  # written by another version, or with other time zones than here
    return Described(str(stored.get("text", stored)))
