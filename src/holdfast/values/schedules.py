"""Schedules and slots as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from holdfast.values.fields import described


@described
@dataclass(frozen=True, kw_only=True)
class ScheduleInfo:
    """A schedule: its trigger, up to when its slots are decided, its last slot and its next."""

    name: str
    trigger: Annotated[str, Field(examples=["*/15 * * * *"])]
    tz: str | None
    """The time zone of a cron expression."""
    queue: str
    evaluated_at: datetime | None
    """Up to when its slots are decided; null until the schedule is stored."""
    paused_at: datetime | None
    note: str | None
    last_seen_at: datetime | None
    """When a worker last reported that its code has the schedule."""
    last: Slot | None
    next_at: datetime | None
    description: Annotated[str, Field(examples=["every 15 minutes"])] = ""
    """The trigger in plain English."""
    others: tuple[str, ...] = ()
    """Live workers whose code defines the schedule differently. They claim none of its slots."""
    unreadable: str | None = None
    """Which stored values can't be decoded, and why."""


Decided = Literal["claimed", "coalesced", "skipped", "missed"]


# The outcome of a claimed slot, by the state of its run.
OUTCOMES = {
    "queued": "queued",
    "running": "running",
    "succeeded": "ran",
    "failed": "failed",
    "timed_out": "skipped_timeout",
    "cancelled": "cancelled",
}


@described
@dataclass(frozen=True, kw_only=True)
class Slot:
    """One due time of a schedule, and its outcome."""

    schedule: str
    scheduled_for: datetime
    outcome: str
    """upcoming, queued, running, ran, failed, cancelled, skipped_timeout (its run timed out), skipped, missed,
    coalesced or removed (its run was deleted)"""
    run_id: str | None = None
    reason: str | None = None
    coalesced_into: datetime | None = None
    manual: bool = False
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    holder: str | None = None
    error: str | None = None
