"""Histograms: durations counted in a few buckets, which can be added up.

The bounds are fixed, from 1 ms to a little more than a day. Each is the previous one times the square root of two, so
a percentile is accurate to within 20 %. The sum of the histograms of several minutes, hours or
machines is the histogram of their total.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.support import json_text

BOUNDS: tuple[float, ...] = tuple(0.001 * 2 ** (number / 2) for number in range(54))
"""In seconds. Bucket `n` counts durations longer than bound `n - 1` and up to bound `n`; the last counts the rest."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """The number of durations in each bucket, and the sum of all durations in seconds."""

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
        """Return a quantile in seconds, accurate to within 20 %; None if the histogram is empty."""
        left = fraction * self.count
        for bucket in sorted(self.counts):
            count = self.counts[bucket]
            if left <= count:
                return middle(bucket)
            left -= count
        return None

    def up_to(self, bound: int) -> int:
        """Return how many durations are at most the bound with this number."""
        return sum(count for bucket, count in self.counts.items() if bucket <= bound)

    def to_json(self) -> str:
        counts = {str(bucket): count for bucket, count in self.counts.items()}
        return json_text.compact({"counts": counts, "seconds": round(self.seconds, 6)})

    @classmethod
    def from_json(cls, text: str) -> Histogram:
        """Return a stored histogram; an empty one if the text can't be decoded."""
        try:
            stored = json_text.load(text)
            counts = {int(bucket): int(count) for bucket, count in stored["counts"].items()}
            return cls(counts, float(stored["seconds"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()


def of(durations: Iterable[tuple[float, int]]) -> Histogram:
    """Return the histogram of durations in seconds, each with its count. A negative duration, after a clock was set
    back, counts as 0."""
    counts: dict[int, int] = {}
    total = 0.0
    for seconds, count in durations:
        bucket = bisect_left(BOUNDS, seconds)
        counts[bucket] = counts.get(bucket, 0) + count
        total += max(seconds, 0.0) * count
    return Histogram(counts, total)


def middle(bucket: int) -> float:
    """Return the value that represents a bucket: the geometric mean of its bounds."""
    return BOUNDS[bucket] / 2**0.25 if bucket < len(BOUNDS) else BOUNDS[-1]
