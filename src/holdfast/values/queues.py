"""Queues and their limits as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from holdfast.support import json_text
from holdfast.support.errors import InvalidPolicy
from holdfast.values.fields import described

MAX_NAME = 200


class Unset(Enum):
    """Marks an option that was not given."""

    UNSET = "unset"


UNSET = Unset.UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many runs of a queue may be queued or running, and how many may run at once; None means no limit."""

    max_queued: int | Unset | None = UNSET
    concurrency: int | Unset | None = UNSET

    @property
    def text(self) -> str:
        limits = {"max_queued": self.max_queued, "concurrency": self.concurrency}
        return json_text.compact({name: limit for name, limit in limits.items() if limit is not UNSET})

    @property
    def is_empty(self) -> bool:
        return self.max_queued is UNSET and self.concurrency is UNSET

    def check(self, queue: str) -> None:
        if not isinstance(queue, str) or not 0 < len(queue) <= MAX_NAME or not json_text.storable(queue):
            raise InvalidPolicy(
                f"a queue's name must be text of 1 to {MAX_NAME} characters, without NUL or lone surrogates"
            )
        for name, value, least in (("max_queued", self.max_queued, 1), ("concurrency", self.concurrency, 1)):
            if value is UNSET or value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 2**31 - 1:
                raise InvalidPolicy(f"{name} must be a whole number of at least {least}, or None for no limit")
        if queue == EVERY_QUEUE and self.concurrency is not UNSET:
            raise InvalidPolicy("concurrency can't limit all queues together; limit each worker with its option -c")


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue with its pause, limits and counts; `*` stands for all queues together."""

    name: str
    paused_at: datetime | None = None
    note: str | None = None
    max_queued: int | None = None
    """How many runs may be queued or running."""
    concurrency: int | None = None
    """How many runs may run at once, over all workers."""
    queued: int = 0
    """Runs that wait or are ready."""
    ready: int = 0
    more: bool = False
    """Whether more runs are queued than were counted; the count stops at 10,000."""
    running: int = 0
    capacity_used: int = 0
    """How many runs count against `max_queued`."""
    oldest_at: datetime | None = None
    """When the oldest queued run was submitted."""
    oldest_ready_at: datetime | None = None
    """When the oldest ready run was submitted."""
    rejected: int = 0
    """Submissions that were refused because the queue was full."""

    @property
    def waiting(self) -> int:
        """How many runs wait and are not ready."""
        return self.queued - self.ready


EVERY_QUEUE = "*"
