"""Progress of pipelines, and the failures inside one, for a page of them at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from holdfast.store.transaction import Row, Transaction
from holdfast.values.pipelines import Progress, Trouble
from holdfast.values.runs import Snapshot

FEW = 10


def progress_of(tx: Transaction, pipelines: Sequence[Snapshot]) -> Mapping[str, Progress]:
    """By the pipeline's id."""
    created = {run.id: run.created_at for run in pipelines}
    rows = tx.all("find_progress", ids=sorted(created)) if created else []
    return {row["parent_id"]: _progress(row, created[row["parent_id"]]) for row in rows}


def _progress(row: Row, created_at: datetime) -> Progress:
    # A first stage that waits to be tried again has begun, but its next start is not known.
    begun_at = (row["begun_at"] or created_at) if row["begun"] else None
    return Progress(stages=row["stages"], done=row["done"], begun_at=begun_at)


def failures_of(tx: Transaction, pipeline_id: str) -> tuple[Trouble, ...]:
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
