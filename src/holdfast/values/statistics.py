"""Statistics as values: counts, durations, throughput and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from holdfast.values.fields import Seconds, described
from holdfast.values.histograms import Histogram
from holdfast.values.queues import Queue


@dataclass(frozen=True, slots=True)
class Count:
    """How many runs ended, and how long they waited and ran."""

    runs: int = 0
    waited: Histogram = field(default_factory=Histogram)
    ran: Histogram = field(default_factory=Histogram)

    def __add__(self, other: Count) -> Count:
        return Count(self.runs + other.runs, self.waited + other.waited, self.ran + other.ran)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Count:
        return cls(row["runs"], Histogram.from_json(row["waited"]), Histogram.from_json(row["ran"]))

    def row(self) -> dict[str, Any]:
        return {"runs": self.runs, "waited": self.waited.to_json(), "ran": self.ran.to_json()}


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """How many runs were waiting or ready, how many were running, and the age of the oldest ready run."""

    at: datetime
    waiting: int
    running: int
    oldest: Seconds | None

    @property
    def quiet(self) -> bool:
        return not self.waiting and not self.running


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long something took, in seconds: the mean and three percentiles, which are accurate to within 20 %."""

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The current throughput, measured over the `runs` runs that have ended since `since`. Cancelled runs count neither
    as successes nor as failures."""

    runs: int
    since: datetime
    per_second: float
    success_rate: float | None
    waited: Times
    ran: Times


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The state of the whole system at the time `at`."""

    at: datetime
    queues: tuple[Queue, ...]
    queued: int
    """Runs that wait or are ready."""
    more: bool
    """Whether more runs are queued than were counted."""
    oldest_waiting: Seconds | None
    """Age of the oldest ready run."""
    running: int
    capacity: int
    workers: int
    paused: tuple[str, ...]
    pace: Throughput


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The runs that ended in the interval that began at `at`."""

    at: datetime
    runs: int
    failed: int
    cancelled: int
    waited: Times
    ran: Times


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points from `since` on, each `step` long; intervals in which no run ended are left out."""

    since: datetime
    until: datetime
    step: Seconds
    points: tuple[Point, ...]


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Similar failures; `message` is the last line of the error with its numbers and ids replaced by placeholders."""

    job: str
    failure_type: str | None
    message: str
    runs: int
    first_at: datetime
    last_at: datetime
    example: str
    """The newest of these runs."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class JobTotals:
    """All runs of one job in one queue that have ever ended."""

    job: str
    queue: str
    succeeded: int
    failed: int
    timed_out: int
    cancelled: int
    waited: Times
    ran: Times

    @property
    def runs(self) -> int:
        return self.succeeded + self.failed + self.timed_out + self.cancelled


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A counter: its name, its label and its value."""

    name: Annotated[str, Field(examples=["lease_lost"])]
    label: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics(Overview):
    """The overview, and all totals and counters since the beginning."""

    totals: tuple[tuple[str, str, str, Count], ...]
    """Job, queue, state, and how many runs ended in that state."""
    counters: Mapping[tuple[str, str], int]
