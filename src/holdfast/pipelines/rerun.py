"""Reruns: a pipeline once more, from its stored plan; whole, or from one stage on with the results of those before."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.pipelines import stages
from holdfast.pipelines.plan import Plan, Stage, plan_submission
from holdfast.runs.snapshot import find_results, get_snapshot
from holdfast.runs.submission import Submission, with_dependencies_of
from holdfast.runs.submit import submit_runs
from holdfast.store.transaction import Transaction
from holdfast.support import json_text
from holdfast.support.errors import HoldfastError, InvalidArguments, StageNotDone
from holdfast.values.policies import Policy


def rerun_pipeline(
    tx: Transaction,
    pipeline_id: str,
    *,
    from_stage: str | None = None,
    idempotency_key: str | None = None,
    allowed: Callable[[str, Policy], None],
) -> str:
    """A new pipeline run that repeats this one; with `from_stage` it uses the runs of the stages before that again.

    `allowed` raises if no one but the application may start runs of that pipeline.
    """
    plan, old = stages.plan_of(tx, pipeline_id), get_snapshot(tx, pipeline_id)
    allowed(old.job, old.policy)
    renew = None if from_stage is None else _from(tx, plan, from_stage)
    new = Submission(
        run_id=tx.new_id(),
        job=old.job,
        queue=old.queue,
        priority=old.priority,
        key=None,
        args="",
        policy=old.policy,
        tags=json_text.compact(old.tags),
        idempotency_key=idempotency_key,
        again_of=old.id,
    )
    # What it waited for was given to its first stages.
    roots = with_dependencies_of(tx, new, plan.stages[0].run_id)
    again = plan_submission(plan, new, new_id=tx.new_id, renew=renew, roots=roots)
    [answer] = submit_runs(tx, [again])
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
    ended = {result.run_id: result for result in find_results(tx, [stage.run_id for stage in kept])}
    for stage in kept:
        result = ended.get(stage.run_id)
        if result is None or (result.state != "succeeded" and not stage.may_fail):
            raise StageNotDone(
                f"stage {stage.name} {'has not ended' if result is None else f'ended {result.state}'}, so its result "
                f"can't be used again; rerun from {stage.name}, or all of it"
            )
        if stage.split is not None and _segments(tx, stage) < result.value["segments"]:
            raise StageNotDone(f"stage {stage.name} is too old: some of its segments are gone; rerun all of it")
    return renew


def _segments(tx: Transaction, stage: Stage) -> int:
    """How many there are; retention may be on its way through them, and leaves these now."""
    return len(tx.all("share_segments", parent_id=stage.pipeline_id, stage=stage.name))
