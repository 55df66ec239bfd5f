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
    """What was not said."""

    UNSET = "unset"


UNSET = Unset.UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many runs of a queue may be queued or running, and how many may run at once; None is: no limit."""

    max_queued: int | Unset | None = UNSET
    concurrency: int | Unset | None = UNSET

    @property
    def text(self) -> str:
        said = {"max_queued": self.max_queued, "concurrency": self.concurrency}
        return json_text.compact({which: limit for which, limit in said.items() if limit is not UNSET})

    @property
    def says_nothing(self) -> bool:
        return self.max_queued is UNSET and self.concurrency is UNSET

    def check(self, queue: str) -> None:
        if not isinstance(queue, str) or not 0 < len(queue) <= MAX_NAME or not json_text.storable(queue):
            raise InvalidPolicy(f"a queue's name is text of 1 to {MAX_NAME} characters, none NUL or half a character")
        for name, value, least in (("max_queued", self.max_queued, 1), ("concurrency", self.concurrency, 1)):
            if value is UNSET or value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 2**31 - 1:
                raise InvalidPolicy(f"{name} is a whole number of at least {least}, or None for no limit")
        if queue == EVERY_QUEUE and self.concurrency is not UNSET:
            raise InvalidPolicy("concurrency is a limit of one queue; a worker's own is its -c")


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue as it stands: pause, limits, what it has; `*` is all of them together."""

    name: str
    paused_at: datetime | None = None
    note: str | None = None
    max_queued: int | None = None
    """Runs that may be queued or running."""
    concurrency: int | None = None
    """Runs at once, over all workers."""
    queued: int = 0
    """Runs that wait or are ready."""
    ready: int = 0
    more: bool = False
    """Whether more runs are queued than were counted: at most 10,000 are."""
    running: int = 0
    seats: int = 0
    """Runs that count against `max_queued`."""
    oldest_at: datetime | None = None
    """When the oldest that is queued was submitted."""
    oldest_ready_at: datetime | None = None
    """When the oldest that is ready was submitted."""
    rejected: int = 0
    """Submissions that were refused because the queue was full."""

    @property
    def waiting(self) -> int:
        """Runs that wait and are not ready."""
        return self.queued - self.ready


EVERY_QUEUE = "*"
