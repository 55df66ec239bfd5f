"""Queue entries: the columns that a run carries through the tables of its states.

claim        the fence: it grows with every claim and is never reused
attempt      how many attempts count against `max_attempts`
takeovers    how many workers were lost while they executed the run
key_limit    how many runs may hold the key at once
key_number   the number of the run's key lock, from 1 to `key_limit`
rate_turn    the run's turn to start under its rate (see runs.limits.rates)
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
    claim: int = 0
    attempt: int = 0
    takeovers: int = 0
    key_limit: int = 1
    key_number: int = 1
    rate_turn: int | None = None

    @classmethod
    def of(cls, row: Row) -> QueueEntry:
        return cls(
            row["run_id"],
            row["job"],
            row["queue"],
            row["rank"],
            row["run_key"],
            row["claim"],
            row["attempt"],
            row["takeovers"],
            row["key_limit"],
            row.get("key_number", 1),
            row.get("rate_turn"),
        )

    def row(self) -> Row:
        return {
            "run_id": self.run_id,
            "job": self.job,
            "queue": self.queue,
            "rank": self.rank,
            "run_key": self.key,
            "claim": self.claim,
            "attempt": self.attempt,
            "takeovers": self.takeovers,
            "key_limit": self.key_limit,
            "key_number": self.key_number,
            "rate_turn": self.rate_turn,
        }

    def claimed(self) -> QueueEntry:
        """Return the entry with the next claim and attempt numbers."""
        return self._replace(claim=self.claim + 1, attempt=self.attempt + 1, rate_turn=None)

    def changed(self, **values: Any) -> QueueEntry:
        return self._replace(**values)
