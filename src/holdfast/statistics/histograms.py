"""Histograms: how long things took, in few numbers that can be added up.

The bounds are fixed: from 1 ms to a day and a bit, each the square root of two times the one before it. So a percentile
is known within a fifth, and histograms of minutes, hours and machines add up to the same as one of all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.support import json_text

BOUNDS: tuple[float, ...] = tuple(0.001 * 2 ** (number / 2) for number in range(54))
"""Seconds; bucket `n` holds what took longer than bound `n - 1` and no longer than bound `n`, the last one the rest."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many took how long: by bucket, and all of it together in seconds."""

    counts: Mapping[int, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def __add__(self, other: Histogram) -> Histogram:
        counts = dict(self.counts)
        for bucket, count in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + count
        return Histogram(counts, self.seconds + other.seconds)

    def quantile(self, fraction: float) -> float | None:
        """Within a fifth of what so large a part took no longer than, in seconds; None if there is nothing."""
        left = fraction * self.count
        for bucket in sorted(self.counts):
            count = self.counts[bucket]
            if left <= count:
                return middle(bucket)
            left -= count
        return None

    def up_to(self, bound: int) -> int:
        """How many took no longer than this bound (its number)."""
        return sum(count for bucket, count in self.counts.items() if bucket <= bound)

    def to_json(self) -> str:
        counts = {str(bucket): count for bucket, count in self.counts.items()}
        return json_text.compact({"counts": counts, "seconds": round(self.seconds, 6)})

    @classmethod
    def from_json(cls, text: str) -> Histogram:
        """A stored histogram; an empty one in place of what can't be decoded."""
        try:
            told = json_text.load(text)
            return cls({int(bucket): int(count) for bucket, count in told["counts"].items()}, float(told["seconds"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()


def of(durations: Iterable[tuple[float, int]]) -> Histogram:
    """The histogram of durations in seconds, each with how often there is one; a clock that was set back makes none
    negative."""
    counts: dict[int, int] = {}
    total = 0.0
    for seconds, count in durations:
        bucket = bisect_left(BOUNDS, seconds)
        counts[bucket] = counts.get(bucket, 0) + count
        total += max(seconds, 0.0) * count
    return Histogram(counts, total)


def middle(bucket: int) -> float:
    """What stands for all that is in a bucket: by ratio, no farther from its upper bound than from its lower one."""
    return BOUNDS[bucket] / 2**0.25 if bucket < len(BOUNDS) else BOUNDS[-1]
