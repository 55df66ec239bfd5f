"""Reruns: a pipeline once more, from its stored plan; whole, or from one stage on with the results of those before."""

from __future__ import annotations

from dataclasses import replace

from holdfast import plans, results, runs, stages
from holdfast.errors import HoldfastError, InvalidArguments, StageNotDone
from holdfast.plans import Plan
from holdfast.store.transaction import Transaction
from holdfast.submissions import Submission


def rerun(tx: Transaction, pipeline_id: str, *, from_stage: str | None = None) -> str:
    """A new pipeline run that repeats this one; with `from_stage` it uses the runs of the stages before that again."""
    plan, old = stages.plan_of(tx, pipeline_id), runs.get(tx, pipeline_id)
    renew = None if from_stage is None else _from(tx, plan, from_stage)
    new = Submission(
        run_id=tx.ids.new(tx.now),
        job=old.job,
        queue=old.queue,
        priority=old.priority,
        key=None,
        args="",
        policy=old.policy,
        tags=plans.tags(old.tags),
        again_of=old.id,
    )
    # What it waited for was given to its first stages; a new run does not wait, but may ask what came of that.
    roots = replace(new, needed=runs.get(tx, plan.stages[0].run_id).needed)
    again = plans.submission(plan, new, new_id=lambda: tx.ids.new(tx.now), renew=renew, roots=roots)
    [answer] = runs.submit(tx, [again])
    if isinstance(answer, HoldfastError):
        raise answer
    return answer


def _from(tx: Transaction, plan: Plan, name: str) -> set[str]:
    """The stages that are done anew; all others have to be done."""
    if name not in {stage.name for stage in plan.stages}:
        known = ", ".join(stage.name for stage in plan.stages)
        raise InvalidArguments(f"the pipeline has no stage {name!r}; there are {known}")
    renew = plan.below(name)
    kept = [stage for stage in plan.stages if stage.name not in renew]
    ended = {result.run_id: result.state for result in results.of(tx, [stage.run_id for stage in kept])}
    for stage in kept:
        state = ended.get(stage.run_id)
        if state != "succeeded" and not (state is not None and stage.may_fail):
            raise StageNotDone(
                f"stage {stage.name} {'has not ended' if state is None else f'ended {state}'}, so its result can't be "
                f"used again; rerun from {stage.name}, or all of it"
            )
    return renew
