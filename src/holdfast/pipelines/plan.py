"""Plans: a pipeline as it was submitted, stored with its run.

    pipeline P   kind 'pipeline'   waits for its stages; concludes with the results of the last
    ├─ script    kind 'stage'      a plain stage: one run
    └─ audio     kind 'stage'      a split stage: waits to be expanded, then for its segments; collects
       ├─ 0      kind 'segment'    made by an orchestrator when the stage's source has ended
       └─ 1      kind 'segment'

A plan says all that an orchestrator has to know, so that one without the code can make segments, and the whole can be
run again from the database alone.
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
    """How a stage falls into segments.

    parameter  which parameter of its function gets a segment's value
    job        the job of a segment's run
    source     the plain stage whose result is the list of segments
    follows    stages of the same segments: a segment waits for its own counterpart in each
    spare      how many segments may end badly; None is any
    """

    parameter: str
    job: str
    source: str
    follows: tuple[str, ...]
    spare: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage; `pipeline_id` is the pipeline that its run belongs to: another one's, where a rerun uses it again."""

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
    """The stages in the order in which they were declared, and the pipeline's arguments as JSON text."""

    arguments: str
    stages: tuple[Stage, ...]

    def __getitem__(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)

    @property
    def last(self) -> tuple[Stage, ...]:
        """The stages that no other comes after."""
        before = {name for stage in self.stages for name in stage.after}
        return tuple(stage for stage in self.stages if stage.name not in before)

    def below(self, name: str) -> set[str]:
        """A stage and all that come after it, at once or later."""
        found = {name}
        for stage in self.stages:
            if found & set(stage.after):
                found.add(stage.name)
        return found

    def to_json(self) -> str:
        stages = json_text.compact([_told(stage) for stage in self.stages])
        return f'{{"arguments":{self.arguments},"stages":{stages}}}'


@lru_cache(maxsize=64)  # every segment that starts reads its pipeline's
def load_plan(text: str) -> Plan:
    """A stored plan."""
    told = json_text.load(text)
    return Plan(
        arguments=json_text.dump(told["arguments"], what="a pipeline's arguments"),
        stages=tuple(_stage(stage) for stage in told["stages"]),
    )


def plan_submission(
    plan: Plan,
    pipeline: Submission,
    *,
    new_id: Callable[[], str],
    renew: set[str] | None = None,
    roots: Submission | None = None,
) -> Submission:
    """The pipeline's own run with those of its stages.

    `renew` names the stages that get new runs (None: all); `roots` says what the first ones wait for.
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
        # All of them, not the last alone: an error of any fails the pipeline at once, and in its own words.
        after={stage.run_id: int(not stage.may_fail) for stage in stages},
        family=tuple(
            _member(plan, stage, pipeline.run_id, roots) for stage in stages if stage.pipeline_id == pipeline.run_id
        ),
    )


def renumber(submission_: Submission, *, new_id: Callable[[], str]) -> Submission:
    """The same submission with another id; a pipeline's with other ids for its stages, too."""
    own = replace(submission_, run_id=new_id())
    return plan_submission(load_plan(own.args), own, new_id=new_id, roots=own.family[0]) if own.family else own


def segment_submission(
    plan: Plan, stage: Stage, *, run_id: str, name: str, value: Any, after: Mapping[str, int], trace: str | None
) -> Submission:
    """The run of one segment of a split stage."""
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
        after=after,
        trace=trace,
    )


def _member(plan: Plan, stage: Stage, pipeline_id: str, roots: Submission | None) -> Submission:
    needs = _needs(plan, stage)
    member = Submission(
        run_id=stage.run_id,
        job=stage.job,
        queue=stage.queue,
        priority=stage.priority,
        key=None,
        args=json_text.compact({"version": stage.version}),
        # A split stage's own run only collects: what its function may do is said of its segments.
        policy=stage.policy if stage.split is None else Policy(),
        kind="stage",
        parent_id=pipeline_id,
        stage=stage.name,
        segment="",
        after=needs,
        errand=None if stage.split is None else "expand",
    )
    if needs or roots is None:
        return member
    after = {run_id: SKIP if must else 0 for run_id, must in roots.after.items()}
    wishes = {wish: SKIP if must else 0 for wish, must in roots.wishes.items()}
    return replace(member, after=after, wishes=wishes, needed=roots.needed, due_at=roots.due_at)


def _needs(plan: Plan, stage: Stage) -> dict[str, int]:
    """What has to have ended before a stage's run can go on, or be expanded."""
    split = stage.split
    if split is None:
        return {plan[name].run_id: _need_of(plan[name]) for name in stage.after}
    whole = [plan[name] for name in stage.after if name not in split.follows]
    # And what those wait for whose segments it follows: an orchestrator could do nothing for it before.
    followed = [_needs(plan, plan[name]).items() for name in split.follows]
    own = {one.run_id: _need_of(one) for one in whole} | {plan[split.source].run_id: SKIP}
    return dict(need for needs in followed for need in needs) | own


def _need_of(stage: Stage) -> int:
    """What a stage's bad end means for those after it."""
    return 0 if stage.may_fail else SKIP


def _told(stage: Stage) -> dict[str, Any]:
    plain = {name: getattr(stage, name) for name in Stage.__slots__}
    split = None if stage.split is None else asdict(stage.split)
    return plain | {"policy": json_text.load(stage.policy.to_json()), "split": split}


def _stage(told: Mapping[str, Any]) -> Stage:
    plain = {name: told[name] for name in Stage.__slots__}
    split = None if (stored := told["split"]) is None else Split(**stored | {"follows": tuple(stored["follows"])})
    policy = load_policy(json_text.compact(told["policy"]))
    return Stage(**plain | {"policy": policy, "after": tuple(told["after"]), "split": split})
