"""Fan out: creates the segments of a split stage once the stage that lists them has ended.

    source ended ──▶ 'expand' ──1,000 per transaction──▶ 'expand:1000' … ──▶ done: the stage waits for its segments

`pending_action` holds this progress. The stage's row is locked, so only one orchestrator works on a stage, and
(pipeline, stage, segment) is unique. Until the last batch, `dependencies_left` of the stage is not a valid count: ended
segments are subtracted at once, but all segments are added with the last batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.pipelines.plan import Plan, Stage, load_plan, segment_submission
from holdfast.runs.finish import end_unstarted
from holdfast.runs.outcomes import Failed
from holdfast.runs.snapshot import find_results
from holdfast.runs.submit import submit_segments
from holdfast.runs.waiting import SKIP, take_waiting
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.errors import NotSerialisable
from holdfast.support.validation import is_segment_name

STAGES = 20


class NotSegments(Exception):
    """Raised if the result of a stage can't be split into segments."""


def stages(tx: Transaction, *, limit: int) -> int:
    """Create up to `limit` segments of split stages. Return how many; a stage without segments counts as one."""
    moved = 0
    for row in tx.all("find_expansions", limit=STAGES):
        if moved >= limit:
            break
        try:
            plan = load_plan(row["args"])
        except (KeyError, TypeError, ValueError, NotSerialisable) as error:
            # Valid JSON may be a plan of another version of Holdfast; a process of that version handles it.
            if not json_text.is_json(row["args"]):
                moved += _fail(tx, row, Failed("RUN_UNREADABLE", f"the pipeline's plan can't be decoded: {error}"))
            continue
        try:
            moved += _expand(tx, row, plan, limit=limit - moved)
        except (NotSegments, NotSerialisable) as error:
            moved += _fail(tx, row, Failed("INVALID_SEGMENTS", str(error)))
    return moved


def _expand(tx: Transaction, row: Row, plan: Plan, *, limit: int) -> int:
    stage = plan[row["stage"]]
    assert stage.split is not None
    begin = int(row["pending_action"].partition(":")[2] or 0)
    segments = _segments(tx, plan[stage.split.source])
    batch = _possible(tx, plan, stage, segments[begin : begin + limit])
    if not batch and begin < len(segments):
        return 0  # a followed stage does not have the next segment yet
    end = begin + len(batch)
    last = end == len(segments)
    dependencies = dict.fromkeys(_insert(tx, plan, stage, batch, traceparent=row["traceparent"]), 0)
    # A segment depends only on the segment of the same name in each followed stage. The stage itself also depends on
    # each followed stage as a whole.
    followed = {plan[name].run_id: SKIP for name in stage.split.follows}
    if dependencies := dependencies | followed if last else dependencies:
        rows = [
            {"depends_on": one, "run_id": row["run_id"], "must_succeed": must}
            for one, must in sorted(dependencies.items())
        ]
        tx.put("insert_dependencies", rows=rows)
    tx.put(
        "set_expansion",
        run_id=row["run_id"],
        pending_action=None if last else f"expand:{end}",
        count=len(segments) + len(followed) if last else 0,
        first=int(begin == 0),
        failures_allowed=stage.split.failures_allowed,
        reason=f"waits for its {len(segments)} segments" if last else f"{end} of {len(segments)} segments are created",
    )
    tx.notify("waits")
    return max(len(batch), 1)


def _segments(tx: Transaction, source: Stage) -> list[tuple[str, Any]]:
    """Return the names and values of a stage's segments; those of a list are numbered from 0."""
    [ended] = find_results(tx, [source.run_id])
    if ended.result is not None and not json_text.is_json(ended.result):
        raise NotSegments(f"the result of stage {source.name} can't be decoded")
    match ended.value:
        case list() as values:
            return [(str(number), value) for number, value in enumerate(values)]
        case dict() as named:
            if wrong := [name for name in named if not is_segment_name(name)]:
                raise NotSegments(
                    f"stage {source.name} returned an invalid segment name {wrong[0]!r}: "
                    "a name must have 1 to 200 characters and must not end with a space"
                )
            return list(named.items())
    raise NotSegments(f"stage {source.name} must return a list or dict of segments")


def _possible(
    tx: Transaction, plan: Plan, stage: Stage, batch: Sequence[tuple[str, Any]]
) -> list[tuple[str, Any, dict[str, int]]]:
    """Return the segments with their dependencies. Stop at the first that a followed stage does not have yet."""
    assert stage.split is not None
    names = [name for name, _ in batch]
    followed: list[dict[str, str]] = []
    for follows in (plan[name] for name in stage.split.follows) if names else ():
        rows = tx.all("find_segments", parent_id=follows.pipeline_id, stage=follows.name, names=names)
        followed.append({row["segment"]: row["id"] for row in rows})
    possible: list[tuple[str, Any, dict[str, int]]] = []
    for name, value in batch:
        if any(name not in runs_of for runs_of in followed):
            break
        possible.append((name, value, {runs_of[name]: SKIP for runs_of in followed}))
    return possible


def _insert(
    tx: Transaction,
    plan: Plan,
    stage: Stage,
    batch: Sequence[tuple[str, Any, dict[str, int]]],
    *,
    traceparent: str | None,
) -> list[str]:
    """Submit the segments. Return the ids of all of them, including those that existed."""
    new = [
        segment_submission(
            plan, stage, run_id=tx.new_id(), name=name, value=value, dependencies=after, traceparent=traceparent
        )
        for name, value, after in batch
    ]
    return submit_segments(tx, new) if new else []


def _fail(tx: Transaction, row: Row, outcome: Failed) -> int:
    failed = take_waiting(tx, [row["run_id"]])
    end_unstarted(tx, dict.fromkeys(failed, outcome))
    return len(failed)
