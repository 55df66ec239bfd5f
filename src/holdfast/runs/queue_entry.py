"""Tickets: what a run carries from place to place.

`attempt` is the fence: it grows at every claim and is never reused. `tries` counts the attempts that used up one of
`max_attempts`; `takeovers` counts the workers that were lost with the run. `key_limit` says how many runs may hold the
key at once, `number` which of its holds the run has; `reserved` is which start of its rate is set aside for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from holdfast.store.transaction import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    run_id: str
    job: str
    queue: str
    rank: int
    key: str | None
    attempt: int = 0
    tries: int = 0
    takeovers: int = 0
    key_limit: int = 1
    number: int = 1
    reserved: int | None = None

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(
            run_id=row["run_id"],
            job=row["job"],
            queue=row["queue"],
            rank=row["rank"],
            key=row["run_key"],
            attempt=row["attempt"],
            tries=row["tries"],
            takeovers=row["takeovers"],
            key_limit=row["key_limit"],
            number=row.get("number", 1),
            reserved=row.get("reserved"),
        )

    def row(self) -> Row:
        return {
            "run_id": self.run_id,
            "job": self.job,
            "queue": self.queue,
            "rank": self.rank,
            "run_key": self.key,
            "attempt": self.attempt,
            "tries": self.tries,
            "takeovers": self.takeovers,
            "key_limit": self.key_limit,
            "number": self.number,
            "reserved": self.reserved,
        }

    def claimed(self) -> QueueEntry:
        """The same run, one attempt on."""
        return QueueEntry(
            run_id=self.run_id,
            job=self.job,
            queue=self.queue,
            rank=self.rank,
            key=self.key,
            attempt=self.attempt + 1,
            tries=self.tries + 1,
            takeovers=self.takeovers,
            key_limit=self.key_limit,
            number=self.number,
        )

    def holding(self, number: int) -> QueueEntry:
        """The same run, whose turn it is for its key."""
        return QueueEntry(
            run_id=self.run_id,
            job=self.job,
            queue=self.queue,
            rank=self.rank,
            key=self.key,
            attempt=self.attempt,
            tries=self.tries,
            takeovers=self.takeovers,
            key_limit=self.key_limit,
            number=number,
            reserved=self.reserved,
        )

    def changed(self, **values: Any) -> Self:
        return replace(self, **values)
