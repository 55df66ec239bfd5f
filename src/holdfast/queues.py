"""Queues: pauses and limits. A queue that is neither paused nor limited has no row; `*` stands for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from holdfast import codec, places, seats
from holdfast.errors import InvalidPolicy
from holdfast.seats import EVERY_QUEUE
from holdfast.store.transaction import Transaction

MAX_NAME = 200
SETTLED = timedelta(minutes=1)
"""By then every submission that began before a bound was set has been committed or is known to be uncounted."""


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
        return codec.compact({which: limit for which, limit in said.items() if limit is not UNSET})

    @property
    def says_nothing(self) -> bool:
        return self.max_queued is UNSET and self.concurrency is UNSET

    def check(self, queue: str) -> None:
        if not isinstance(queue, str) or not 0 < len(queue) <= MAX_NAME or not codec.storable(queue):
            raise InvalidPolicy(f"a queue's name is text of 1 to {MAX_NAME} characters, none NUL or half a character")
        for name, value, least in (("max_queued", self.max_queued, 1), ("concurrency", self.concurrency, 1)):
            if value is UNSET or value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 2**31 - 1:
                raise InvalidPolicy(f"{name} is a whole number of at least {least}, or None for no limit")
        if queue == EVERY_QUEUE and self.concurrency is not UNSET:
            raise InvalidPolicy("concurrency is a limit of one queue; a worker's own is its -c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue as it stands: pause, limits, what it has.

    `seats` is how many runs count against `max_queued`; `oldest_at` when the oldest that is queued was submitted.
    """

    name: str
    paused_at: datetime | None = None
    note: str | None = None
    max_queued: int | None = None
    concurrency: int | None = None
    queued: int = 0
    ready: int = 0
    running: int = 0
    seats: int = 0
    oldest_at: datetime | None = None


def pause(tx: Transaction, name: str, *, note: str | None) -> None:
    """Let nothing of this queue be claimed; what runs goes on."""
    tx.put("ensure_queue", name=name)
    codec.check_text(note, what="note")
    tx.put("pause_queue", name=name, now=tx.now, note=note)


def resume(tx: Transaction, name: str) -> None:
    """Let it be claimed again."""
    tx.put("resume_queue", name=name)
    tx.ring(name)


def limit(tx: Transaction, name: str, limits: Limits, *, declared: bool = False) -> None:
    """Set what of a queue's limits was said; runs that are there are counted from now on.

    `declared` says that it was the code that said it.
    """
    tx.put("ensure_queue", name=name)
    [before] = tx.all("lock_queue", name=name)
    max_queued = before["max_queued"] if limits.max_queued is UNSET else limits.max_queued
    concurrency = before["concurrency"] if limits.concurrency is UNSET else limits.concurrency
    became_bounded = before["max_queued"] is None and max_queued is not None
    counted_at = tx.now + SETTLED if became_bounded else before["counted_at"]
    tx.put(
        "set_limits",
        name=name,
        max_queued=max_queued,
        concurrency=concurrency,
        counted_at=counted_at,
        declared=limits.text if declared else before["declared"],
    )
    if became_bounded:
        after: str | None = ""
        while after is not None:
            after = seats.fill(tx, name, after=after)
    elif before["max_queued"] is not None and max_queued is None:
        seats.clear(tx)
    if before["concurrency"] is None and concurrency is not None:
        places.fill(tx, name)
    tx.ring(name)


def is_news(tx: Transaction, name: str, limits: Limits) -> bool:
    """Whether the code says other limits than it last said: what was changed at run time stands until it does."""
    found = tx.one("find_queue", name=name)
    return found is None or found["declared"] != limits.text


def listed(tx: Transaction) -> list[Queue]:
    """Every queue that has a run or something said about it."""
    taken = {row["queue"]: row["seats"] for row in tx.all("count_all_seats")}
    taken[EVERY_QUEUE] = sum(taken.values())
    return [Queue(**row, seats=taken.get(row["name"], 0)) for row in tx.all("list_queues")]
