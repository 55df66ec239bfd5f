"""Stages: where each stage of a pipeline stands, and what its function is given.

A stage or segment is a run, so its state follows from the place of that run; that of a split stage from its segments:

    NEW      waits                          no one can claim it yet
    READY    ready
    RUNNING  leases
    DONE     outcomes, succeeded
    ERROR    outcomes, otherwise; or waits for its retry, until an orchestrator makes it ready again
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from holdfast import codec, plans, results, runs
from holdfast.errors import PipelineNotFound
from holdfast.leases import Claim
from holdfast.plans import Plan, Stage
from holdfast.runs import Snapshot
from holdfast.store.transaction import Row, Transaction

StageState: TypeAlias = Literal["NEW", "READY", "RUNNING", "DONE", "ERROR"]
STATES: tuple[StageState, ...] = get_args(StageState)
Counted: TypeAlias = dict[tuple[str, str, bool], dict[tuple[StageState, bool], int]]
"""(pipeline, stage, of its segments) → (state, for good) → how many runs."""


@dataclass(frozen=True, kw_only=True)
class StageInfo:
    """One stage of a pipeline's run; `segments` counts those of a split stage by their states."""

    name: str
    version: str
    run_id: str
    state: StageState
    ended: bool
    """Whether that is for good: a stage in ERROR may still be tried again."""
    after: tuple[str, ...]
    split: bool
    reused: bool
    """Its run belongs to the pipeline that this one repeats."""
    segments: Mapping[StageState, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many runs do its work, as far as that is known."""
        return sum(self.segments.values()) if self.split else 1

    @property
    def done(self) -> int:
        return self.segments.get("DONE", 0) if self.split else int(self.state == "DONE")


@dataclass(frozen=True, kw_only=True)
class PipelineInfo:
    """A pipeline's run and its stages, in the order in which they were declared."""

    run: Snapshot
    stages: tuple[StageInfo, ...]


def state_of(place: str | None, state: str, *, retrying: bool) -> StageState:
    """The state of a stage or segment whose run stands there."""
    match place:
        case "outcomes":
            return "DONE" if state == "succeeded" else "ERROR"
        case "leases":
            return "RUNNING"
        case "ready":
            return "READY"
    return "ERROR" if retrying else "NEW"


def show(tx: Transaction, run_id: str) -> PipelineInfo:
    """Where the stages of a pipeline stand: counts, whatever the number of segments."""
    plan, run = plan_of(tx, run_id), runs.get(tx, run_id)
    counted = _counted(tx, plan)
    return PipelineInfo(run=run, stages=tuple(_info(stage, counted, own=run_id) for stage in plan.stages))


def list_pipelines(
    tx: Transaction, *, job: str | None, state: str | None, limit: int, before: str | None
) -> list[Snapshot]:
    """The newest pipelines first."""
    rows = tx.all("list_pipelines", job=job, state=state, limit=limit, before=before or "~")
    return [runs.snapshot(row) for row in rows]


def plan_of(tx: Transaction, pipeline_id: str) -> Plan:
    row = tx.one("get_submissions", ids=[pipeline_id])
    if row is None or row["kind"] != "pipeline":
        raise PipelineNotFound(f"run {pipeline_id} is no pipeline" if row else f"there is no run {pipeline_id}")
    return plans.load(row["args"])


def inputs(
    tx: Transaction, pipeline_id: str, stage: str, segment: str | None, *, names: Sequence[str]
) -> dict[str, str]:
    """What a stage's function is given under these names, as JSON text: results of stages before it, or arguments."""
    plan = plan_of(tx, pipeline_id)
    own, known = plan[stage], {one.name for one in plan.stages}
    arguments = codec.load(plan.arguments)
    found: dict[str, str] = {}
    for name in names:
        if name in known:
            found[name] = _result(tx, plan, plan[name], own=own, segment=segment)
        elif name == "segments":
            found[name] = _results(tx, plan, _split_before(plan, own))
        elif name in arguments:
            found[name] = codec.dump(arguments[name], what=name)
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
    return codec.compact({"segments": info.total, "done": info.done})


def as_object(values: Mapping[str, str]) -> str:
    """JSON texts as one JSON object."""
    return "{" + ",".join(f"{codec.compact(name)}:{text}" for name, text in values.items()) + "}"


def _info(stage: Stage, counted: Counted, *, own: str) -> StageInfo:
    [(state, ended)] = counted.get((stage.pipeline_id, stage.name, False), {("NEW", False): 1})
    segments: dict[StageState, int] = dict.fromkeys(STATES, 0) if stage.split is not None else {}
    for (one, _), count in counted.get((stage.pipeline_id, stage.name, True), {}).items():
        segments[one] += count
    return StageInfo(
        name=stage.name,
        version=stage.version,
        run_id=stage.run_id,
        state=state if ended else _in_progress(state, segments),
        ended=ended,
        after=stage.after,
        split=stage.split is not None,
        reused=stage.pipeline_id != own,
        segments=segments,
    )


def _in_progress(own: StageState, segments: Mapping[StageState, int]) -> StageState:
    """The state of a split stage while its segments are under way is that of the one that is furthest."""
    under_way: tuple[StageState, ...] = ("RUNNING", "READY", "ERROR")
    return next((state for state in under_way if own == "NEW" and segments.get(state)), own)


def _counted(tx: Transaction, plan: Plan) -> Counted:
    counted: Counted = {}
    for pipeline_id in sorted({stage.pipeline_id for stage in plan.stages}):
        for row in tx.all("count_stages", parent_id=pipeline_id):
            states = counted.setdefault((pipeline_id, row["stage"], bool(row["is_segment"])), {})
            state = state_of(row["place"], row["state"], retrying=bool(row["retrying"]))
            found = state, row["place"] == "outcomes"
            states[found] = states.get(found, 0) + row["runs"]
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
    return "[" + ",".join(row["result"] for row in sorted(rows, key=_number)) + "]"


def _number(row: Row) -> int:
    return int(row["segment"])


def _of_run(tx: Transaction, run_id: str) -> str:
    found = results.of(tx, [run_id])
    return found[0].result or "null" if found else "null"


def _split_before(plan: Plan, stage: Stage) -> Stage:
    return next(plan[name] for name in stage.after if plan[name].split is not None)


def waiting(tx: Transaction, run: Snapshot) -> list[tuple[str, str | None]]:
    """What a pipeline waits for, or a stage for its segments, each with the run whose own reasons tell more, if there
    is one; nothing for a run that is neither."""
    if run.kind == "pipeline":
        open_stages = [stage for stage in show(tx, run.id).stages if not stage.ended]
        begun = [stage for stage in open_stages if stage.state != "NEW" or (stage.split and stage.total)]
        return [
            (f"it waits for stage {stage.name}{_standing(stage)}", _telling(tx, run.id, stage))
            for stage in begun or open_stages[:1]
        ]
    if run.kind == "stage" and run.parent_id is not None:
        plan = plan_of(tx, run.parent_id)
        info = _info(plan[str(run.stage)], _counted(tx, plan), own=run.parent_id)
        if info.split and info.total:
            return [(f"it waits for its segments{_standing(info)}", _telling(tx, run.parent_id, info))]
    return []


def _telling(tx: Transaction, pipeline_id: str, info: StageInfo) -> str | None:
    """The run that tells why a stage stands where it does: its own; of its segments one that no one claims."""
    if not info.split or not info.total:
        return info.run_id if info.state != "ERROR" else None
    if info.segments["RUNNING"] or not info.segments["READY"]:
        return None
    row = tx.one("find_ready_segment", parent_id=pipeline_id, stage=info.name)
    return None if row is None else str(row["id"])


def _standing(info: StageInfo) -> str:
    """': 7 of 10 segments done, 1 running, 2 ready', or ', which is READY'."""
    if not info.split or not info.total:
        return f", which is {info.state}"
    order: tuple[StageState, ...] = ("RUNNING", "READY", "NEW", "ERROR")
    others = [f"{info.segments[state]} {state.lower()}" for state in order if info.segments[state]]
    return f": {', '.join([f'{info.done} of {info.total} segments done', *others])}"


def value_of(args: str) -> Any:
    """A segment's own value, as its run was given it."""
    return codec.load(args)["value"]


def answer(tx: Transaction, claim: Claim, what: str, *, names: Sequence[str]) -> dict[str, str]:
    """What a run that starts asks for: a pipeline and a split stage what they come to, a stage what it is given."""
    if what == "pipeline":
        return {"result": conclusion(tx, claim.lease.run_id)}
    assert claim.parent_id is not None
    assert claim.stage is not None
    if what == "collector":
        return {"result": collection(tx, claim.parent_id, claim.stage)}
    return inputs(tx, claim.parent_id, claim.stage, claim.segment, names=names)
