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
    """A schedule as it stands: its trigger, how far its slots are decided, its last slot and its next."""

    name: str
    trigger: Annotated[str, Field(examples=["*/15 * * * *"])]
    tz: str | None
    """The zone by whose clock it goes, if it is cron."""
    queue: str
    considered_at: datetime | None
    """Up to when its slots are decided; null as long as no worker has started with it."""
    paused_at: datetime | None
    note: str | None
    seen_at: datetime | None
    """When a worker last said that its code knows it."""
    last: Slot | None
    next_at: datetime | None
    words: Annotated[str, Field(examples=["every 15 minutes"])] = ""
    """The trigger as one would say it."""
    others: tuple[str, ...] = ()
    """Live workers whose code has another definition of the schedule. They claim none of its slots."""
    unreadable: str | None = None
    """Which stored values can't be decoded, and why."""


Decided = Literal["claimed", "coalesced", "skipped", "missed"]


# What a claimed slot is called, by the state of its run.
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
    """One due time of a schedule, and what became of it."""

    schedule: str
    scheduled_for: datetime
    outcome: str
    """upcoming, queued, running, ran, failed, cancelled, skipped_timeout (over its longest time), skipped, missed or
    coalesced"""
    run_id: str | None = None
    because: str | None = None
    coalesced_into: datetime | None = None
    manual: bool = False
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    holder: str | None = None
    error: str | None = None
