"""Figures as values: counts, durations, depth, throughput and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.statistics.rollups import Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How many runs waited (or were ready) and ran, and how long the oldest had been ready."""

    at: datetime
    waiting: int
    running: int
    oldest: timedelta | None

    @property
    def quiet(self) -> bool:
        return not self.waiting and not self.running


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long something took, in seconds: half of it, 95 and 99 of 100 no longer than that; within a fifth."""

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How many runs of a queue wait (`waits`, `ready`) or run (`leases`); `more`: they were not all counted."""

    queue: str
    place: str
    runs: int
    more: bool


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """How it stands at `at`. `oldest_waiting` is the age of the oldest run that is ready, and `oldest` by queue."""

    at: datetime
    depths: tuple[Depth, ...]
    oldest_waiting: timedelta | None
    oldest: Mapping[str, timedelta]
    running: int
    capacity: int
    workers: int
    paused: tuple[str, ...]
    pace: Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What ended in the span that began at `at`."""

    at: datetime
    runs: int
    failed: int
    cancelled: int
    waited: Times
    ran: Times


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points from `since` on, each `step` long; one in which nothing ended is left out."""

    since: datetime
    until: datetime
    step: timedelta
    points: tuple[Point, ...]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFigures:
    """A queue: what waits and runs, its limits, and how often it refused a submission."""

    queue: str
    waiting: Depth
    ready: Depth
    running: int
    oldest_waiting: timedelta | None
    paused_at: datetime | None
    note: str | None
    max_queued: int | None
    concurrency: int | None
    rejected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A counter's name, what it is about, and how far it has come."""

    name: str
    label: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Everything that is counted, as it stands at one moment."""

    depths: tuple[Depth, ...]
    oldest: Mapping[str, timedelta]
    running: int
    capacity: int
    workers: int
    paused: tuple[str, ...]
    totals: tuple[tuple[str, str, str, Count], ...]
    """Job, queue, state, and how many ended so."""
    counters: Mapping[tuple[str, str], int]
