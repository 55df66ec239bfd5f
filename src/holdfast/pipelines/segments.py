"""Segments: the parts of a split stage one by one, each with its run; a page of them, whatever their number."""

from __future__ import annotations

from holdfast.pipelines.plan import Plan
from holdfast.store.transaction import Row, Transaction
from holdfast.support.errors import InvalidArguments
from holdfast.values.pipelines import Segment, fate_of, state_of
from holdfast.values.runs import last_line


def of(tx: Transaction, plan: Plan, stage: str, *, limit: int, after: str) -> list[Segment]:
    """The segments of a stage by name, the short names first (so 9 comes before 10), after this one."""
    known = [one.name for one in plan.stages]
    if stage not in known:
        raise InvalidArguments(f"the pipeline has no stage {stage!r}; there are {', '.join(known)}")
    # A rerun shows the segments of the pipeline whose stage it uses again.
    rows = tx.all("list_segments", parent_id=plan[stage].pipeline_id, stage=stage, after=after, limit=limit)
    return [_segment(row) for row in rows]


def _segment(row: Row) -> Segment:
    retrying = row["due_at"] is not None and row["tries"] > 0
    state = state_of(row["place"], row["state"], retrying=retrying, claimed=row["attempt"] > 0)
    fate = fate_of(state, ended=row["place"] == "outcomes", run_state=row["state"])
    return Segment(
        name=row["segment"],
        run_id=row["id"],
        state=state,
        fate=fate,
        attempt=row["attempt"],
        retry_at=row["due_at"] if fate == "retrying" else None,
        reason=last_line(row["reason"] or "") if fate == "skipped" else None,
    )
