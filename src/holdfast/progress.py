"""Progress: how far pipelines are, a whole page of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.runs import Snapshot
from holdfast.store.transaction import Row, Transaction


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Of the stages that run for a pipeline (not those that a rerun uses again): how many there are, and are done."""

    stages: int
    done: int
    begun_at: datetime | None
    """When the first of them started; None where none has."""

    def took(self, run: Snapshot, *, now: datetime) -> timedelta | None:
        """How long its pipeline has been under way, or was; None if it ended before a stage began."""
        until = run.finished_at or now
        return None if self.begun_at is None or self.begun_at > until else until - self.begun_at


def of(tx: Transaction, pipelines: Sequence[Snapshot]) -> Mapping[str, Progress]:
    """By the pipeline's id."""
    created = {run.id: run.created_at for run in pipelines}
    rows = tx.all("find_progress", ids=sorted(created)) if created else []
    return {row["parent_id"]: _progress(row, created[row["parent_id"]]) for row in rows}


def _progress(row: Row, created_at: datetime) -> Progress:
    # A first stage that waits to be tried again has begun, but its next start is not known.
    begun_at = (row["begun_at"] or created_at) if row["begun"] else None
    return Progress(stages=row["stages"], done=row["done"], begun_at=begun_at)
