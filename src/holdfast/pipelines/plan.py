"""Plans: a pipeline as it was submitted, stored with its run.

    pipeline P   kind 'pipeline'   waits for its stages; its result is that of the last stage
    ├─ script    kind 'stage'      a plain stage: one run
    └─ audio     kind 'stage'      a split stage: waits to be split, then for its segments, and counts them
       ├─ 0      kind 'segment'    created by an orchestrator when the stage's source has ended
       └─ 1      kind 'segment'

A plan holds everything that an orchestrator needs to create segments, so the orchestrator doesn't need the code. A
pipeline can be run again from the database alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from holdfast.runs.submission import Submission
from holdfast.runs.waiting import SKIP
from holdfast.support import json_text
from holdfast.values.policies import Policy, load_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How a stage is split into segments.

    parameter         the parameter of its function that gets a segment's value
    job               the job of a segment's run
    source            the plain stage whose result lists the segments
    follows           stages with the same segments; a segment waits for the segment of the same name in each
    failures_allowed  how many segments may fail; None means any number
    """

    parameter: str
    job: str
    source: str
    follows: tuple[str, ...]
    failures_allowed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage. `pipeline_id` is the pipeline that its run belongs to: an earlier one, if a rerun reuses the stage."""

    name: str
    version: str
    job: str
    queue: str
    priority: int
    policy: Policy
    after: tuple[str, ...]
    may_fail: bool = False
    split: Split | None = None
    run_id: str = ""
    pipeline_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The stages in the order of their declaration, and the pipeline's arguments as JSON text."""

    arguments: str
    stages: tuple[Stage, ...]

    def __getitem__(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)

    @property
    def last(self) -> tuple[Stage, ...]:
        """The stages that no other stage waits for."""
        before = {name for stage in self.stages for name in stage.after}
        return tuple(stage for stage in self.stages if stage.name not in before)

    def below(self, name: str) -> set[str]:
        """Return a stage and all stages that depend on it, directly or not."""
        names = {name}
        for stage in self.stages:
            if names & set(stage.after):
                names.add(stage.name)
        return names

    def to_json(self) -> str:
        stages = json_text.compact([_stage_to_json(stage) for stage in self.stages])
        return f'{{"arguments":{self.arguments},"stages":{stages}}}'


@lru_cache(maxsize=64)  # each segment reads its pipeline's plan when it starts
def load_plan(text: str) -> Plan:
    """Decode a stored plan."""
    stored = json_text.load(text)
    return Plan(
        arguments=json_text.dump(stored["arguments"], what="a pipeline's arguments"),
        stages=tuple(_stage_from_json(stage) for stage in stored["stages"]),
    )


def plan_submission(
    plan: Plan,
    pipeline: Submission,
    *,
    new_id: Callable[[], str],
    renew: set[str] | None = None,
    roots: Submission | None = None,
) -> Submission:
    """Return the submission of a pipeline's run together with the runs of its stages.

    `renew` names the stages that get new runs (None means all); `roots` holds the dependencies of the first stages.
    """
    stages = tuple(
        replace(stage, run_id=new_id(), pipeline_id=pipeline.run_id) if renew is None or stage.name in renew else stage
        for stage in plan.stages
    )
    plan = replace(plan, stages=stages)
    return replace(
        pipeline,
        kind="pipeline",
        args=plan.to_json(),
        # It depends on all stages, not only the last: if any fails, the pipeline fails at once, with that error.
        dependencies={stage.run_id: int(not stage.may_fail) for stage in stages},
        family=tuple(
            _member(plan, stage, pipeline.run_id, roots) for stage in stages if stage.pipeline_id == pipeline.run_id
        ),
    )


def renumber(submission: Submission, *, new_id: Callable[[], str]) -> Submission:
    """Return the same submission with a new id; for a pipeline, its stages get new ids, too."""
    own = replace(submission, run_id=new_id())
    return plan_submission(load_plan(own.args), own, new_id=new_id, roots=own.family[0]) if own.family else own


def segment_submission(
    plan: Plan,
    stage: Stage,
    *,
    run_id: str,
    name: str,
    value: Any,
    dependencies: Mapping[str, int],
    traceparent: str | None,
) -> Submission:
    """Return the submission of one segment of a split stage."""
    assert stage.split is not None
    return Submission(
        run_id=run_id,
        job=stage.split.job,
        queue=stage.queue,
        priority=stage.priority,
        key=None,
        args=json_text.dump({"version": stage.version, "value": value}, what=f"segment {name}"),
        policy=stage.policy,
        kind="segment",
        parent_id=stage.pipeline_id,
        stage=stage.name,
        segment=name,
        dependencies=dependencies,
        traceparent=traceparent,
    )


def _member(plan: Plan, stage: Stage, pipeline_id: str, roots: Submission | None) -> Submission:
    dependencies = _dependencies(plan, stage)
    member = Submission(
        run_id=stage.run_id,
        job=stage.job,
        queue=stage.queue,
        priority=stage.priority,
        key=None,
        args=json_text.compact({"version": stage.version}),
        # The run of a split stage only counts its segments; the stage's policy applies to the segments.
        policy=stage.policy if stage.split is None else Policy(),
        kind="stage",
        parent_id=pipeline_id,
        stage=stage.name,
        segment="",
        dependencies=dependencies,
        pending_action=None if stage.split is None else "expand",
    )
    if dependencies or roots is None:
        return member
    build_requests = {request: SKIP if must else 0 for request, must in roots.build_requests.items()}
    return replace(
        member,
        dependencies={run_id: SKIP if must else 0 for run_id, must in roots.dependencies.items()},
        build_requests=build_requests,
        depends_on=roots.depends_on,
        due_at=roots.due_at,
    )


def _dependencies(plan: Plan, stage: Stage) -> dict[str, int]:
    """Return the runs that must end before a stage can start, or be split."""
    split = stage.split
    if split is None:
        return {plan[name].run_id: _if_failed(plan[name]) for name in stage.after}
    whole = [plan[name] for name in stage.after if name not in split.follows]
    # A stage with the same segments as another also waits for the other stage's dependencies. Before they have ended,
    # the other stage has no segments, and this stage's segments depend on those.
    followed = [_dependencies(plan, plan[name]).items() for name in split.follows]
    own = {one.run_id: _if_failed(one) for one in whole} | {plan[split.source].run_id: SKIP}
    return dict(dependency for dependencies in followed for dependency in dependencies) | own


def _if_failed(stage: Stage) -> int:
    """Return what happens to later stages if this one fails: they run anyway (0), or are skipped (SKIP)."""
    return 0 if stage.may_fail else SKIP


def _stage_to_json(stage: Stage) -> dict[str, Any]:
    plain = {name: getattr(stage, name) for name in Stage.__slots__}
    split = None if stage.split is None else asdict(stage.split)
    return plain | {"policy": json_text.load(stage.policy.to_json()), "split": split}


def _stage_from_json(stored: Mapping[str, Any]) -> Stage:
    plain = {name: stored[name] for name in Stage.__slots__}
    split = stored["split"]
    policy = load_policy(json_text.compact(stored["policy"]))
    return Stage(
        **plain
        | {
            "policy": policy,
            "after": tuple(stored["after"]),
            "split": None if split is None else Split(**split | {"follows": tuple(split["follows"])}),
        }
    )
