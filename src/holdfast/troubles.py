"""Troubles: the runs of a pipeline that failed, or that failed and will be tried again, so that one finds the run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.store.transaction import Row, Transaction

FEW = 10


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A stage's or segment's run, and the last line of what went wrong."""

    run_id: str
    stage: str
    segment: str | None
    """None is the run of a stage that is not split."""
    state: str
    """`queued` while it waits to be tried again, at `retry_at`."""
    retry_at: datetime | None
    error: str

    @property
    def name(self) -> str:
        """audio[3], or render."""
        return self.stage if self.segment is None else f"{self.stage}[{self.segment}]"


def of(tx: Transaction, pipeline_id: str) -> tuple[Trouble, ...]:
    """The first few of them, the oldest first; not what ended only because something else did."""
    rows = tx.all("find_troubles", parent_id=pipeline_id, passed_on="NEED_FAILED", limit=FEW)
    return tuple(_trouble(row) for row in rows)


def _trouble(row: Row) -> Trouble:
    retrying = row["place"] != "outcomes"
    told = (row["because"] if retrying else row["error"]) or ""
    return Trouble(
        run_id=row["id"],
        stage=row["stage"],
        segment=row["segment"] or None,
        state=row["state"],
        retry_at=row["due_at"] if retrying else None,
        error=(told.strip().splitlines() or [row["failure_type"] or ""])[-1],
    )
