"""Queue entries: what a run carries from place to place.

`attempt` is the fence: it grows at every claim and is never reused. `tries` counts the attempts that used up one of
`max_attempts`; `takeovers` counts the workers that were lost with the run. `key_limit` says how many runs may hold the
key at once, `number` which of its holds the run has; `reserved` is which start of its rate is set aside for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.store.transaction import Row


class QueueEntry(NamedTuple):
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
    def of(cls, row: Row) -> QueueEntry:
        return cls(
            row["run_id"],
            row["job"],
            row["queue"],
            row["rank"],
            row["run_key"],
            row["attempt"],
            row["tries"],
            row["takeovers"],
            row["key_limit"],
            row.get("number", 1),
            row.get("reserved"),
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
        return self._replace(attempt=self.attempt + 1, tries=self.tries + 1, reserved=None)

    def changed(self, **values: Any) -> QueueEntry:
        return self._replace(**values)
