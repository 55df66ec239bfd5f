"""Rates: how many runs may start within a period, written as 10/min, 1/s or 100/30s."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from holdfast.support.errors import InvalidPolicy

MAX_ROWS = 100
LONGEST = timedelta(days=366)

_UNITS = {
    spelling: timedelta(**{unit: 1})
    for unit, spellings in {
        "seconds": ("s", "sec", "second", "seconds"),
        "minutes": ("m", "min", "minute", "minutes"),
        "hours": ("h", "hour", "hours"),
        "days": ("d", "day", "days"),
    }.items()
    for spelling in spellings
}
_RATE = re.compile(rf"(\d{{1,9}})\s*/\s*(\d{{1,6}})?\s*({'|'.join(_UNITS)})")


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `count` starts in any interval as long as `period`."""

    count: int
    period: timedelta


@lru_cache(maxsize=1024)
def parse_rate(text: str) -> Rate:
    """Return the rate that is enforced, with at most 100 starts in a period.

    A larger rate is split into shorter periods with fewer starts each, so that the given rate is never exceeded.
    """
    match = _RATE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise InvalidPolicy(f"{text!r} is not a rate: write 10/min, 1/s (or h, d), or 100/30s")
    count, period = int(match[1]), int(match[2] or 1) * _UNITS[match[3]]
    if count < 1 or not timedelta(0) < period <= LONGEST:
        raise InvalidPolicy(f"rate {text!r}: allow at least one start, in a period of at most {LONGEST.days} days")
    parts = -(-count // MAX_ROWS)
    if period / parts < timedelta(milliseconds=1):
        raise InvalidPolicy(f"rate {text!r} is above the maximum of 100,000 starts a second")
    # Round up: a period shorter by a fraction of a microsecond would allow one start too many.
    return Rate(count // parts, -(-period // (parts * _MICROSECOND)) * _MICROSECOND)


def rate_in_words(duration: timedelta) -> str:
    """Format a duration: 0.15 s, 2 s, 1 min 30 s, 2 h, 1 d 6 h."""
    minutes, seconds = divmod(duration.total_seconds(), 60)
    hours, minutes = divmod(int(minutes), 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s"))
    return " ".join(f"{value:g} {unit}" for value, unit in parts if value)


_MICROSECOND = timedelta(microseconds=1)
