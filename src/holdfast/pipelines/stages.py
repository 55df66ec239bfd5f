"""Stages: the states of a pipeline's stages and segments, and the inputs of their functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeAlias

from holdfast.pipelines.plan import Plan, Stage, load_plan
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.snapshot import find_results, get_snapshot, snapshot_of
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.errors import HoldfastError, InvalidArguments, PipelineNotFound, Unreadable
from holdfast.values.pipelines import (
    STATES,
    ErrorKind,
    Group,
    PipelineInfo,
    Progress,
    Segment,
    StageFailure,
    StageInfo,
    StageState,
    error_kind_of,
    in_words,
    state_of,
)
from holdfast.values.runs import Snapshot, last_line

FEW = 10  # failures of a pipeline that are shown

Groups: TypeAlias = dict[tuple[str, str, bool], list[Group]]
"""The runs of stages by pipeline id, stage name, and whether they are segments."""


def show(tx: Transaction, run_id: str) -> PipelineInfo:
    """Return the state of each stage of a pipeline. Segments are not listed, only counted by state."""
    try:
        plan, fault = plan_of(tx, run_id), None
    except Unreadable as error:
        plan, fault = Plan(arguments="{}", stages=()), str(error)
    run = get_snapshot(tx, run_id)
    run = replace(run, unreadable=run.unreadable or fault)
    groups = _count_groups(tx, plan)
    return PipelineInfo(
        run=run,
        stages=tuple(_info(stage, groups, own=run_id) for stage in plan.stages),
        progress=progress_of(tx, [run]).get(run_id, Progress(stages=0, done=0, begun_at=None)),
        failures=failures_of(tx, run_id),
    )


def list_pipelines(
    tx: Transaction, *, job: str | None, state: str | None, limit: int, before: str | None
) -> list[Snapshot]:
    """List pipelines, newest first."""
    rows = tx.all("list_pipelines", job=job, state=state, limit=limit, before=before or "~")
    return [snapshot_of(row) for row in rows]


def progress_of(tx: Transaction, pipelines: Sequence[Snapshot]) -> Mapping[str, Progress]:
    """Return the progress of these pipelines, by run id."""
    created = {run.id: run.created_at for run in pipelines}
    rows = tx.all("find_progress", ids=sorted(created)) if created else []
    return {row["parent_id"]: _progress(row, created[row["parent_id"]]) for row in rows}


def _progress(row: Row, created_at: datetime) -> Progress:
    # If the first stage waits for a retry, it has started, but the time is no longer known: use the submission's.
    begun_at = (row["begun_at"] or created_at) if row["begun"] else None
    return Progress(stages=row["stages"], done=row["done"], begun_at=begun_at)


def failures_of(tx: Transaction, pipeline_id: str) -> tuple[StageFailure, ...]:
    """Return the first few failed runs of a pipeline, oldest first, except those whose dependency failed."""
    rows = tx.all("find_stage_failures", parent_id=pipeline_id, passed_on="DEPENDENCY_FAILED", limit=FEW)
    return tuple(_failure(row) for row in rows)


def _failure(row: Row) -> StageFailure:
    retrying = row["place"] != "outcomes"
    message = (row["reason"] if retrying else row["error"]) or ""
    return StageFailure(
        run_id=row["id"],
        stage=row["stage"],
        segment=row["segment"] or None,
        state=row["state"],
        retry_at=row["due_at"] if retrying else None,
        error=last_line(message) or row["failure_type"] or "",
    )


def list_segments(tx: Transaction, plan: Plan, stage: str, *, limit: int, after: str) -> list[Segment]:
    """List the segments of a stage after the one named `after`. Short names come first, so 9 comes before 10."""
    known = [one.name for one in plan.stages]
    if stage not in known:
        raise InvalidArguments(f"the pipeline has no stage {stage!r}; its stages are {', '.join(known)}")
    # For a stage that a rerun reuses, these are the segments of the earlier pipeline.
    rows = tx.all("list_segments", parent_id=plan[stage].pipeline_id, stage=stage, after=after, limit=limit)
    return [_segment(row) for row in rows]


def _segment(row: Row) -> Segment:
    retrying = row["due_at"] is not None and row["attempt"] > 0
    state = state_of(row["place"], row["state"], retrying=retrying, claimed=row["claim"] > 0)
    error_kind = error_kind_of(state, ended=row["place"] == "outcomes", run_state=row["state"])
    return Segment(
        name=row["segment"],
        run_id=row["id"],
        state=state,
        error_kind=error_kind,
        claim=row["claim"],
        retry_at=row["due_at"] if error_kind == "retrying" else None,
        reason=last_line(row["reason"] or "") if error_kind == "skipped" else None,
    )


def plan_of(tx: Transaction, pipeline_id: str) -> Plan:
    row = tx.one("get_submissions", ids=[pipeline_id])
    if row is None or row["kind"] != "pipeline":
        raise PipelineNotFound(f"run {pipeline_id} is not a pipeline" if row else f"there is no run {pipeline_id}")
    try:
        return load_plan(row["args"])
    except (ValueError, KeyError, TypeError, AttributeError, HoldfastError) as error:
        raise Unreadable(f"the plan of pipeline {pipeline_id} can't be decoded: {error}") from error


def inputs(
    tx: Transaction, pipeline_id: str, stage: str, segment: str | None, *, names: Sequence[str]
) -> dict[str, str]:
    """Return the values of these parameters of a stage as JSON text: results of earlier stages, or arguments."""
    plan = plan_of(tx, pipeline_id)
    own, known = plan[stage], {one.name for one in plan.stages}
    arguments = json_text.load(plan.arguments)
    values: dict[str, str] = {}
    for name in names:
        if name in known:
            values[name] = _result(tx, plan, plan[name], own=own, segment=segment)
        elif name == "segments":
            values[name] = _segment_results(tx, plan, _split_before(plan, own))
        elif name in arguments:
            values[name] = json_text.dump(arguments[name], what=name)
    return values


def pipeline_result(tx: Transaction, pipeline_id: str) -> str:
    """Return a pipeline's result: that of its last stage, or an object by stage if there are several last stages."""
    plan = plan_of(tx, pipeline_id)
    results = {stage.name: _result(tx, plan, stage) for stage in plan.last}
    return next(iter(results.values())) if len(results) == 1 else as_object(results)


def split_stage_result(tx: Transaction, pipeline_id: str, stage: str) -> str:
    """Return the result of a split stage's own run: how many segments there are, and how many succeeded."""
    plan = plan_of(tx, pipeline_id)
    info = _info(plan[stage], _count_groups(tx, plan), own=pipeline_id)
    return json_text.compact({"segments": info.total, "done": info.done})


def as_object(values: Mapping[str, str]) -> str:
    """Join JSON texts into one JSON object."""
    return "{" + ",".join(f"{json_text.compact(name)}:{text}" for name, text in values.items()) + "}"


def _info(stage: Stage, groups: Groups, *, own: str) -> StageInfo:
    [whole] = groups.get((stage.pipeline_id, stage.name, False), [Group(state="NEW", ended=False)])
    parts = groups.get((stage.pipeline_id, stage.name, True), [])
    segments: dict[StageState, int] = dict.fromkeys(STATES, 0) if stage.split is not None else {}
    errors: dict[ErrorKind, int] = {}
    for group in parts:
        segments[group.state] += group.runs
    for group in parts or [whole]:
        if group.error_kind is not None:
            errors[group.error_kind] = errors.get(group.error_kind, 0) + group.runs
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
    """Return the state of a stage: that of its own run, unless the stage is split and its own run is NEW.

    In that case the segments decide: RUNNING if one is running, else READY, else ERROR. If the stage's own run has
    ended without being claimed, ERROR comes first.
    """
    order: tuple[StageState, ...] = ("ERROR", "RUNNING", "READY") if whole.ended else ("RUNNING", "READY", "ERROR")
    return next((state for state in order if whole.state == "NEW" and segments.get(state)), whole.state)


def _count_groups(tx: Transaction, plan: Plan) -> Groups:
    groups: Groups = {}
    for pipeline_id in sorted({stage.pipeline_id for stage in plan.stages}):
        for row in tx.all("count_stages", parent_id=pipeline_id):
            stage_groups = groups.setdefault((pipeline_id, row["stage"], bool(row["is_segment"])), [])
            ended = row["place"] == "outcomes"
            retrying, claimed = bool(row["retrying"]), bool(row["claimed"])
            state = state_of(row["place"], row["state"], retrying=retrying, claimed=claimed)
            error_kind = error_kind_of(state, ended=ended, run_state=row["state"])
            retry_at = row["due_at"] if error_kind == "retrying" else None
            reason = last_line(row["reason"] or "") or None
            stage_groups.append(
                Group(
                    state=state, ended=ended, error_kind=error_kind, retry_at=retry_at, reason=reason, runs=row["runs"]
                )
            )
    return groups


def _result(tx: Transaction, plan: Plan, stage: Stage, *, own: Stage | None = None, segment: str | None = None) -> str:
    """Return a stage's result. If it has the same segments as `own`, return only the result of segment `segment`."""
    if stage.split is None:
        return _run_result(tx, stage.run_id)
    if segment and own is not None and own.split is not None and own.split.source == stage.split.source:
        row = tx.one("find_segments", parent_id=stage.pipeline_id, stage=stage.name, names=[segment])
        return "null" if row is None else _run_result(tx, row["id"])
    return _segment_results(tx, plan, stage)


def _segment_results(tx: Transaction, plan: Plan, stage: Stage) -> str:
    """Return the results of the segments that succeeded, as the source listed them: an ordered list, or an object."""
    assert stage.split is not None
    rows = tx.all("find_segment_results", parent_id=stage.pipeline_id, stage=stage.name)
    if _run_result(tx, plan[stage.split.source].run_id).lstrip().startswith("{"):
        return as_object({row["segment"]: row["result"] for row in rows})
    return "[" + ",".join(row["result"] for row in sorted(rows, key=lambda row: int(row["segment"]))) + "]"


def _run_result(tx: Transaction, run_id: str) -> str:
    results = find_results(tx, [run_id])
    return results[0].result or "null" if results else "null"


def _split_before(plan: Plan, stage: Stage) -> Stage:
    return next(plan[name] for name in stage.after if plan[name].split is not None)


def waiting(tx: Transaction, run: Snapshot) -> list[tuple[str, str | None]]:
    """Say what a pipeline, or a split stage, waits for; an empty list for other runs.

    Each sentence comes with the id of the run whose own reasons explain more, if there is one.
    """
    if run.kind == "pipeline":
        info = show(tx, run.id)
        open_stages = [stage for stage in info.stages if not stage.ended]
        started = [stage for stage in open_stages if stage.state != "NEW" or (stage.split and stage.total)]
        return [
            (f"it waits for stage {stage.name}{_status(stage, info.failures)}", _run_to_explain(tx, run.id, stage))
            for stage in started or open_stages[:1]
        ]
    if run.kind == "stage" and run.parent_id is not None:
        try:
            plan = plan_of(tx, run.parent_id)
        except Unreadable as error:
            return [(str(error), None)]
        stage = _info(plan[str(run.stage)], _count_groups(tx, plan), own=run.parent_id)
        if stage.split and stage.total:
            status = _status(stage, failures_of(tx, run.parent_id))
            return [(f"it waits for its segments{status}", _run_to_explain(tx, run.parent_id, stage))]
    return []


def _run_to_explain(tx: Transaction, pipeline_id: str, info: StageInfo) -> str | None:
    """Return the run whose reasons explain a stage's state, if there is one.

    It is the stage's own run or, if the stage is split and no segment is running, a ready segment.
    """
    if not info.split or not info.total:
        return info.run_id if info.state != "ERROR" else None
    if info.segments["RUNNING"] or not info.segments["READY"]:
        return None
    row = tx.one("find_ready_segment", parent_id=pipeline_id, stage=info.name)
    return None if row is None else str(row["id"])


def _status(info: StageInfo, failures: Sequence[StageFailure]) -> str:
    """': 7 of 10 segments done, 1 running, 2 ready', or ', which is READY'."""
    error = next((one.error for one in failures if one.stage == info.name and one.retry_at == info.retry_at), "")
    details = in_words(info, reason=error)
    if not info.split or not info.total:
        return f", which is {info.state}{''.join(f': {detail}' for detail in details)}"
    return f": {', '.join([f'{info.done} of {info.total} segments done', *details])}"


def segment_value(args: str) -> Any:
    """Return a segment's value from the stored arguments of its run."""
    return json_text.load(args)["value"]


def answer(tx: Transaction, claimed: ClaimedRun, what: str, *, names: Sequence[str]) -> dict[str, str]:
    """Return the values for a run that starts: the result of a pipeline or split stage, or the inputs of a stage."""
    if what == "pipeline":
        return {"result": pipeline_result(tx, claimed.lease.run_id)}
    assert claimed.parent_id is not None
    assert claimed.stage is not None
    if what == "collector":
        return {"result": split_stage_result(tx, claimed.parent_id, claimed.stage)}
    return inputs(tx, claimed.parent_id, claimed.stage, claimed.segment, names=names)
