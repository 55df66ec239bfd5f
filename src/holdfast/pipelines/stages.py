"""Stages: where the stages and segments of a pipeline stand, and what their functions are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeAlias

from holdfast.pipelines.plan import Plan, Stage, load_plan
from holdfast.runs.claim import Claim
from holdfast.runs.snapshot import find_results, get_snapshot, snapshot_of
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.errors import HoldfastError, InvalidArguments, PipelineNotFound, Unreadable
from holdfast.values.pipelines import (
    STATES,
    Fate,
    Group,
    PipelineInfo,
    Progress,
    Segment,
    StageInfo,
    StageState,
    Trouble,
    fate_of,
    in_words,
    state_of,
)
from holdfast.values.runs import Snapshot, last_line

FEW = 10  # failures of a pipeline that are shown

Counted: TypeAlias = dict[tuple[str, str, bool], list[Group]]
"""By pipeline, stage, and whether they are its segments."""


def show(tx: Transaction, run_id: str) -> PipelineInfo:
    """Where the stages of a pipeline stand: counts, whatever the number of segments."""
    try:
        plan, fault = plan_of(tx, run_id), None
    except Unreadable as error:
        plan, fault = Plan(arguments="{}", stages=()), str(error)
    run = get_snapshot(tx, run_id)
    run = replace(run, unreadable=run.unreadable or fault)
    counted = _counted(tx, plan)
    return PipelineInfo(
        run=run,
        stages=tuple(_info(stage, counted, own=run_id) for stage in plan.stages),
        progress=progress_of(tx, [run]).get(run_id, Progress(stages=0, done=0, begun_at=None)),
        troubles=failures_of(tx, run_id),
    )


def list_pipelines(
    tx: Transaction, *, job: str | None, state: str | None, limit: int, before: str | None
) -> list[Snapshot]:
    """The newest pipelines first."""
    rows = tx.all("list_pipelines", job=job, state=state, limit=limit, before=before or "~")
    return [snapshot_of(row) for row in rows]


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
        error=last_line(told) or row["failure_type"] or "",
    )


def list_segments(tx: Transaction, plan: Plan, stage: str, *, limit: int, after: str) -> list[Segment]:
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


def plan_of(tx: Transaction, pipeline_id: str) -> Plan:
    row = tx.one("get_submissions", ids=[pipeline_id])
    if row is None or row["kind"] != "pipeline":
        raise PipelineNotFound(f"run {pipeline_id} is no pipeline" if row else f"there is no run {pipeline_id}")
    try:
        return load_plan(row["args"])
    except (ValueError, KeyError, TypeError, AttributeError, HoldfastError) as error:
        raise Unreadable(f"the plan of pipeline {pipeline_id} can't be decoded: {error}") from error


def inputs(
    tx: Transaction, pipeline_id: str, stage: str, segment: str | None, *, names: Sequence[str]
) -> dict[str, str]:
    """What a stage's function is given under these names, as JSON text: results of stages before it, or arguments."""
    plan = plan_of(tx, pipeline_id)
    own, known = plan[stage], {one.name for one in plan.stages}
    arguments = json_text.load(plan.arguments)
    found: dict[str, str] = {}
    for name in names:
        if name in known:
            found[name] = _result(tx, plan, plan[name], own=own, segment=segment)
        elif name == "segments":
            found[name] = _results(tx, plan, _split_before(plan, own))
        elif name in arguments:
            found[name] = json_text.dump(arguments[name], what=name)
    return found


def conclusion(tx: Transaction, pipeline_id: str) -> str:
    """What a pipeline comes to: the result of its last stage, or of each by name where there are several."""
    plan = plan_of(tx, pipeline_id)
    found = {stage.name: _result(tx, plan, stage) for stage in plan.last}
    return next(iter(found.values())) if len(found) == 1 else as_object(found)


def collection(tx: Transaction, pipeline_id: str, stage: str) -> str:
    """What a split stage comes to: how many segments there are, and how many have succeeded."""
    plan = plan_of(tx, pipeline_id)
    info = _info(plan[stage], _counted(tx, plan), own=pipeline_id)
    return json_text.compact({"segments": info.total, "done": info.done})


def as_object(values: Mapping[str, str]) -> str:
    """JSON texts as one JSON object."""
    return "{" + ",".join(f"{json_text.compact(name)}:{text}" for name, text in values.items()) + "}"


def _info(stage: Stage, counted: Counted, *, own: str) -> StageInfo:
    [whole] = counted.get((stage.pipeline_id, stage.name, False), [Group(state="NEW", ended=False)])
    parts = counted.get((stage.pipeline_id, stage.name, True), [])
    segments: dict[StageState, int] = dict.fromkeys(STATES, 0) if stage.split is not None else {}
    errors: dict[Fate, int] = {}
    for group in parts:
        segments[group.state] += group.runs
    for group in parts or [whole]:
        if group.fate is not None:
            errors[group.fate] = errors.get(group.fate, 0) + group.runs
    state = _state(whole, segments)
    return StageInfo(
        name=stage.name,
        version=stage.version,
        run_id=stage.run_id,
        state=state,
        ended=whole.ended,
        after=stage.after,
        split=stage.split is not None,
        reused=stage.pipeline_id != own,
        segments=segments,
        errors=errors,
        retry_at=min((group.retry_at for group in parts or [whole] if group.retry_at is not None), default=None),
        reason=whole.reason if state == "NEW" else None,
    )


def _state(whole: Group, segments: Mapping[StageState, int]) -> StageState:
    """The state of a split stage is that of its furthest segment until it has ended; then an ERROR comes first. Its
    own run only waits and counts: if that ended before it was claimed, the segments say what became of the stage."""
    order: tuple[StageState, ...] = ("ERROR", "RUNNING", "READY") if whole.ended else ("RUNNING", "READY", "ERROR")
    return next((state for state in order if whole.state == "NEW" and segments.get(state)), whole.state)


def _counted(tx: Transaction, plan: Plan) -> Counted:
    counted: Counted = {}
    for pipeline_id in sorted({stage.pipeline_id for stage in plan.stages}):
        for row in tx.all("count_stages", parent_id=pipeline_id):
            groups = counted.setdefault((pipeline_id, row["stage"], bool(row["is_segment"])), [])
            ended = row["place"] == "outcomes"
            retrying, claimed = bool(row["retrying"]), bool(row["claimed"])
            state = state_of(row["place"], row["state"], retrying=retrying, claimed=claimed)
            fate = fate_of(state, ended=ended, run_state=row["state"])
            retry_at = row["due_at"] if fate == "retrying" else None
            reason = last_line(row["reason"] or "") or None
            groups.append(
                Group(state=state, ended=ended, fate=fate, retry_at=retry_at, reason=reason, runs=row["runs"])
            )
    return counted


def _result(tx: Transaction, plan: Plan, stage: Stage, *, own: Stage | None = None, segment: str | None = None) -> str:
    """What a stage came to; of one with the same segments as ours, what our own segment came to there."""
    if stage.split is None:
        return _of_run(tx, stage.run_id)
    if segment and own is not None and own.split is not None and own.split.source == stage.split.source:
        row = tx.one("find_segments", parent_id=stage.pipeline_id, stage=stage.name, names=[segment])
        return "null" if row is None else _of_run(tx, row["id"])
    return _results(tx, plan, stage)


def _results(tx: Transaction, plan: Plan, stage: Stage) -> str:
    """What the segments of a stage came to, those that succeeded: a list in order, or a mapping by their names."""
    assert stage.split is not None
    rows = tx.all("find_segment_results", parent_id=stage.pipeline_id, stage=stage.name)
    if _of_run(tx, plan[stage.split.source].run_id).lstrip().startswith("{"):
        return as_object({row["segment"]: row["result"] for row in rows})
    return "[" + ",".join(row["result"] for row in sorted(rows, key=lambda row: int(row["segment"]))) + "]"


def _of_run(tx: Transaction, run_id: str) -> str:
    found = find_results(tx, [run_id])
    return found[0].result or "null" if found else "null"


def _split_before(plan: Plan, stage: Stage) -> Stage:
    return next(plan[name] for name in stage.after if plan[name].split is not None)


def waiting(tx: Transaction, run: Snapshot) -> list[tuple[str, str | None]]:
    """What a pipeline waits for, or a stage for its segments, each with the run whose own reasons tell more, if there
    is one; nothing for a run that is neither."""
    if run.kind == "pipeline":
        info = show(tx, run.id)
        open_stages = [stage for stage in info.stages if not stage.ended]
        begun = [stage for stage in open_stages if stage.state != "NEW" or (stage.split and stage.total)]
        told = info.troubles
        return [
            (f"it waits for stage {stage.name}{_standing(stage, told)}", _telling(tx, run.id, stage))
            for stage in begun or open_stages[:1]
        ]
    if run.kind == "stage" and run.parent_id is not None:
        try:
            plan = plan_of(tx, run.parent_id)
        except Unreadable as error:
            return [(str(error), None)]
        stage = _info(plan[str(run.stage)], _counted(tx, plan), own=run.parent_id)
        told = failures_of(tx, run.parent_id)
        if stage.split and stage.total:
            return [(f"it waits for its segments{_standing(stage, told)}", _telling(tx, run.parent_id, stage))]
    return []


def _telling(tx: Transaction, pipeline_id: str, info: StageInfo) -> str | None:
    """The run that tells why a stage stands where it does: its own; of its segments one that no one claims."""
    if not info.split or not info.total:
        return info.run_id if info.state != "ERROR" else None
    if info.segments["RUNNING"] or not info.segments["READY"]:
        return None
    row = tx.one("find_ready_segment", parent_id=pipeline_id, stage=info.name)
    return None if row is None else str(row["id"])


def _standing(info: StageInfo, found: Sequence[Trouble]) -> str:
    """': 7 of 10 segments done, 1 running, 2 ready', or ', which is READY'."""
    why = next((one.error for one in found if one.stage == info.name and one.retry_at == info.retry_at), "")
    others = in_words(info, because=why)
    if not info.split or not info.total:
        return f", which is {info.state}{''.join(f': {words}' for words in others)}"
    return f": {', '.join([f'{info.done} of {info.total} segments done', *others])}"


def value_of(args: str) -> Any:
    """A segment's own value, as its run was given it."""
    return json_text.load(args)["value"]


def answer(tx: Transaction, claim: Claim, what: str, *, names: Sequence[str]) -> dict[str, str]:
    """What a run that starts asks for: a pipeline and a split stage what they come to, a stage what it is given."""
    if what == "pipeline":
        return {"result": conclusion(tx, claim.lease.run_id)}
    assert claim.parent_id is not None
    assert claim.stage is not None
    if what == "collector":
        return {"result": collection(tx, claim.parent_id, claim.stage)}
    return inputs(tx, claim.parent_id, claim.stage, claim.segment, names=names)
