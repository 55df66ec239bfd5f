"""Outcomes: how an attempt ends, with or without ending its run.

    finish ──▶ Succeeded | Failed | TimedOut | Cancelled   the run has ended; its outcome never changes
           ──▶ RetryLater                                  back to waits, until it is due
           ──▶ WaitForChildren                             back to waits, until its children have ended
           ──▶ Release                                     back to ready, for example because its worker shuts down

Only `finish` ends a run. It moves only the runs whose leases its DELETE returned; the other leases were lost.
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
    """The run never started, because one of its dependencies did not succeed."""

    word: ClassVar[str] = "skipped"
    reason: str


@dataclass(frozen=True, slots=True)
class RetryLater:
    word: ClassVar[str] = "retried"
    error: str
    after: timedelta
    key_order: KeyOrder = "due"
    counts: bool = True
    """Whether the attempt counts against `max_attempts`."""


@dataclass(frozen=True, slots=True)
class WaitForChildren:
    """The run continues when these runs have ended; until then it occupies no worker."""

    word: ClassVar[str] = "waits"
    run_ids: tuple[str, ...]
    key_order: KeyOrder = "due"


@dataclass(frozen=True, slots=True)
class Release:
    word: ClassVar[str] = "released"
    reason: str


Final: TypeAlias = Succeeded | Failed | TimedOut | Cancelled | Skipped
Outcome: TypeAlias = Final | RetryLater | WaitForChildren | Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A run that was removed from its state table, and its outcome."""

    entry: QueueEntry
    outcome: Final
    holder: str | None = None
    started_at: datetime | None = None
