"""Outcomes: how a run ends, or that it does not end yet.

    finish ──▶ Succeeded | Failed | TimedOut | Cancelled   an outcome, for good
           ──▶ RetryLater                                  back to waits, until it is due
           ──▶ WaitForChildren                             back to waits, until its children have ended
           ──▶ Release                                     back to ready: the worker shuts down, or its loop is blocked

Only `finish` ends a run. What leaves `leases` is what the DELETE returned; the rest was lost to someone else.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, TypeAlias

from holdfast.runs.queue_entry import QueueEntry
from holdfast.values.policies import KeyOrder


@dataclass(frozen=True, slots=True)
class Succeeded:
    word: ClassVar[str] = "succeeded"
    result: str = "null"


@dataclass(frozen=True, slots=True)
class Failed:
    word: ClassVar[str] = "failed"
    failure_type: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TimedOut:
    word: ClassVar[str] = "timed_out"
    error: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    word: ClassVar[str] = "cancelled"
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """It never started, because what it needs ended without a result."""

    word: ClassVar[str] = "skipped"
    reason: str


@dataclass(frozen=True, slots=True)
class RetryLater:
    word: ClassVar[str] = "retried"
    error: str
    after: timedelta
    key_order: KeyOrder = "due"
    counts: bool = True
    """Whether it uses up one of the run's tries."""


@dataclass(frozen=True, slots=True)
class WaitForChildren:
    """Not an end and no failure: the run goes on when these others have ended, and holds no worker until then."""

    word: ClassVar[str] = "waits"
    run_ids: tuple[str, ...]
    key_order: KeyOrder = "due"


@dataclass(frozen=True, slots=True)
class Release:
    word: ClassVar[str] = "released"
    because: str


Final: TypeAlias = Succeeded | Failed | TimedOut | Cancelled | Skipped
Outcome: TypeAlias = Final | RetryLater | WaitForChildren | Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A run that has left its place, and how it ends."""

    ticket: QueueEntry
    outcome: Final
    holder: str | None = None
    started_at: datetime | None = None
