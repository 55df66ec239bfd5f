"""Figures as values: counts, durations, throughput and failures."""

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
    """How many ended, and how long they waited and ran."""

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
class Sample:
    """How many runs waited (or were ready) and ran, and how long the oldest had been ready."""

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
    """How long something took, in seconds: half of it, 95 and 99 of 100 no longer than that; within a fifth."""

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How it goes just now: measured on the `runs` that ended last, since `since`. Those that were cancelled count
    neither as a success nor as a failure."""

    runs: int
    since: datetime
    per_second: float
    success_rate: float | None
    waited: Times
    ran: Times


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """How it stands at `at`."""

    at: datetime
    queues: tuple[Queue, ...]
    queued: int
    """Runs that wait or are ready."""
    more: bool
    """Whether more runs are queued than were counted."""
    oldest_waiting: Seconds | None
    """Age of the oldest run that is ready."""
    running: int
    capacity: int
    workers: int
    paused: tuple[str, ...]
    pace: Pace


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What ended in the span that began at `at`."""

    at: datetime
    runs: int
    failed: int
    cancelled: int
    waited: Times
    ran: Times


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points from `since` on, each `step` long; one in which nothing ended is left out."""

    since: datetime
    until: datetime
    step: Seconds
    points: tuple[Point, ...]


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Failures that look alike; `gist` is the last line of the error with its numbers and ids made alike."""

    job: str
    failure_type: str | None
    gist: str
    runs: int
    first_at: datetime
    last_at: datetime
    example: str
    """The newest of these runs."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class JobTotals:
    """All that ever ended of a job (and queue, where one is named)."""

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
    """A counter's name, what it is about, and how far it has come."""

    name: Annotated[str, Field(examples=["leases_lost"])]
    label: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(Overview):
    """The overview, and everything that was counted since the beginning."""

    totals: tuple[tuple[str, str, str, Count], ...]
    """Job, queue, state, and how many ended so."""
    counters: Mapping[tuple[str, str], int]
