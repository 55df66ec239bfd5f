"""Schedules and slots as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ScheduleInfo:
    """A schedule as it stands: its trigger in words, how far its slots are decided, its last slot and its next.

    tz              the zone by whose clock it goes, if it is cron
    considered_at,  None as long as no worker has started with it
    seen_at
    """

    name: str
    trigger: str
    tz: str | None
    queue: str
    considered_at: datetime | None
    paused_at: datetime | None
    note: str | None
    seen_at: datetime | None
    last: Slot | None
    next_at: datetime | None
    words: str = ""
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


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A slot as a person reads it.

    outcome  upcoming, queued, running, ran, failed, cancelled, skipped_timeout (over its longest time),
             skipped, missed or coalesced
    """

    schedule: str
    scheduled_for: datetime
    outcome: str
    run_id: str | None = None
    because: str | None = None
    coalesced_into: datetime | None = None
    manual: bool = False
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    holder: str | None = None
    error: str | None = None
