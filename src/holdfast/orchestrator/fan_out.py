"""Fan out: make the segments of a split stage, when the stage that lists them has ended.

    source ended ──▶ errand 'expand' ──1,000 a transaction──▶ 'expand:1000' … ──▶ no errand: it waits for its segments

The stage's wait is locked, so one orchestrator makes them; each is inserted against (pipeline, stage, segment), which
is unique. While the errand stands its `missing` is not a count: segments that have ended are subtracted at once, all
that were made are added with the last batch.
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
    """What a stage returned can't be split."""


def stages(tx: Transaction, *, limit: int) -> int:
    """Make up to `limit` segments of stages that wait for it; how many were made or, for empty stages, seen to."""
    moved = 0
    for row in tx.all("find_expansions", limit=STAGES):
        if moved >= limit:
            break
        try:
            plan = load_plan(row["args"])
        except (KeyError, TypeError, ValueError, NotSerialisable) as error:
            # The plan may be of another version of Holdfast: a process that knows it makes the segments.
            if not json_text.is_json(row["args"]):
                moved += _fail(tx, row, Failed("RUN_UNREADABLE", f"its pipeline's plan can't be decoded: {error}"))
            continue
        try:
            moved += _expand(tx, row, plan, limit=limit - moved)
        except (NotSegments, NotSerialisable) as error:
            moved += _fail(tx, row, Failed("NOT_SEGMENTS", str(error)))
    return moved


def _expand(tx: Transaction, row: Row, plan: Plan, *, limit: int) -> int:
    stage = plan[row["stage"]]
    assert stage.split is not None
    begin = int(row["errand"].partition(":")[2] or 0)
    segments = _segments(tx, plan[stage.split.source])
    batch = _possible(tx, plan, stage, segments[begin : begin + limit])
    if not batch and begin < len(segments):
        return 0  # what it follows has yet to be expanded
    end = begin + len(batch)
    last = end == len(segments)
    needs = dict.fromkeys(_insert(tx, plan, stage, batch, trace=row["trace"]), 0)
    # What it follows must not have failed as a whole, though each segment waits for its own counterpart only.
    followed = {plan[name].run_id: SKIP for name in stage.split.follows}
    if needs := needs | followed if last else needs:
        rows = [{"needed": one, "run_id": row["run_id"], "must_succeed": must} for one, must in sorted(needs.items())]
        tx.put("insert_needs", rows=rows)
    tx.put(
        "set_expansion",
        run_id=row["run_id"],
        errand=None if last else f"expand:{end}",
        count=len(segments) + len(followed) if last else 0,
        first=int(begin == 0),
        spare=stage.split.spare,
        because=f"waits for its {len(segments)} segments" if last else f"{end} of {len(segments)} segments are made",
    )
    tx.notify("waits")
    return max(len(batch), 1)


def _segments(tx: Transaction, source: Stage) -> list[tuple[str, Any]]:
    """The names and values of a stage's segments; a list's are numbered from 0."""
    [ended] = find_results(tx, [source.run_id])
    if ended.result is not None and not json_text.is_json(ended.result):
        raise NotSegments(f"the result of stage {source.name} can't be decoded")
    match ended.value:
        case list() as values:
            return [(str(number), value) for number, value in enumerate(values)]
        case dict() as named:
            if wrong := [name for name in named if not is_segment_name(name)]:
                raise NotSegments(
                    f"stage {source.name} named a segment {wrong[0]!r}: "
                    "a name has 1 to 200 characters, the last no space"
                )
            return list(named.items())
    raise NotSegments(f"stage {source.name} returned no list or mapping of segments")


def _possible(
    tx: Transaction, plan: Plan, stage: Stage, batch: Sequence[tuple[str, Any]]
) -> list[tuple[str, Any, dict[str, int]]]:
    """With each segment what it waits for; up to the first whose counterpart in another stage is yet to be made."""
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
    tx: Transaction, plan: Plan, stage: Stage, batch: Sequence[tuple[str, Any, dict[str, int]]], *, trace: str | None
) -> list[str]:
    """Submit the segments; the ids of all of them, be they new or not."""
    new = [
        segment_submission(plan, stage, run_id=tx.new_id(), name=name, value=value, after=after, trace=trace)
        for name, value, after in batch
    ]
    return submit_segments(tx, new) if new else []


def _fail(tx: Transaction, row: Row, outcome: Failed) -> int:
    failed = take_waiting(tx, [row["run_id"]])
    end_unstarted(tx, dict.fromkeys(failed, outcome))
    return len(failed)
