"""Tickets: what a run carries from place to place.

`attempt` is the fence: it grows at every claim and is never reused. `tries` counts the attempts that used up one of
`max_attempts`; `takeovers` counts the workers that were lost with the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from holdfast.store.transaction import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    run_id: str
    job: str
    queue: str
    rank: int
    key: str | None
    attempt: int = 0
    tries: int = 0
    takeovers: int = 0

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(**{name: row[name] for name in _FIELDS})

    def row(self) -> Row:
        return {name: getattr(self, name) for name in _FIELDS}

    def changed(self, **values: Any) -> Self:
        return replace(self, **values)


_FIELDS = ("run_id", "job", "queue", "rank", "key", "attempt", "tries", "takeovers")
