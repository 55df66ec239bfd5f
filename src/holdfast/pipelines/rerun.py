"""Reruns: submit a pipeline again from its stored plan, all of it or from one stage on.

A rerun from a stage reuses the results of the stages before it.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.pipelines import stages
from holdfast.pipelines.plan import Plan, Stage, plan_submission
from holdfast.runs.snapshot import find_results, get_snapshot
from holdfast.runs.submission import Submission, with_dependencies_of
from holdfast.runs.submit import submit_one
from holdfast.store.transaction import Transaction
from holdfast.support import json_text
from holdfast.support.errors import InvalidArguments, StageNotDone
from holdfast.values.policies import Policy


def rerun_pipeline(
    tx: Transaction,
    pipeline_id: str,
    *,
    from_stage: str | None = None,
    idempotency_key: str | None = None,
    allowed: Callable[[str, Policy], None],
) -> str:
    """Submit a new run of a pipeline and return its id. With `from_stage` it reuses the earlier stages' runs.

    `allowed` raises if only the application's code may start this pipeline.
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
    # The dependencies of the old pipeline are stored with its first stage.
    roots = with_dependencies_of(tx, new, plan.stages[0].run_id)
    return submit_one(tx, plan_submission(plan, new, new_id=tx.new_id, renew=renew, roots=roots))


def _from(tx: Transaction, plan: Plan, name: str) -> set[str]:
    """Return the stages that run again, or raise StageNotDone if another stage has no result to reuse."""
    if name not in {stage.name for stage in plan.stages}:
        known = ", ".join(stage.name for stage in plan.stages)
        raise InvalidArguments(f"the pipeline has no stage {name!r}; its stages are {known}")
    renew = plan.below(name)
    kept = [stage for stage in plan.stages if stage.name not in renew]
    ended = {result.run_id: result for result in find_results(tx, [stage.run_id for stage in kept])}
    for stage in kept:
        result = ended.get(stage.run_id)
        if result is None or (result.state != "succeeded" and not stage.may_fail):
            raise StageNotDone(
                f"stage {stage.name} {'has not ended' if result is None else f'ended as {result.state}'}, so its "
                f"result can't be reused; rerun from {stage.name}, or rerun the whole pipeline"
            )
        if stage.split is not None and _count_segments(tx, stage) < result.value["segments"]:
            raise StageNotDone(f"some segments of stage {stage.name} have been pruned; rerun the whole pipeline")
    return renew


def _count_segments(tx: Transaction, stage: Stage) -> int:
    """Count the segments of a stage, and lock them so that pruning leaves them alone."""
    return len(tx.all("share_segments", parent_id=stage.pipeline_id, stage=stage.name))
