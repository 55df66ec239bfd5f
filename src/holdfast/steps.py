"""Steps: parts of a run that are remembered, so that a later attempt does not do them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.store.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    name: str
    result: str
    attempt: int
    tries: int
    started_at: datetime
    finished_at: datetime
    number: int = 0
    """The how-manieth of its attempt, in the order of writing."""


def insert(tx: Transaction, finished: Sequence[tuple[str, Step]]) -> None:
    """Keep the results of finished steps, each with its run; the caller has guarded the leases in this transaction."""
    rows = [{name: getattr(step, name) for name in Step.__slots__} | {"run_id": run_id} for run_id, step in finished]
    if rows:
        tx.put("insert_steps", rows=rows)


def of(tx: Transaction, run_id: str) -> list[Step]:
    return [Step(**row) for row in tx.all("find_steps", run_id=run_id)]
