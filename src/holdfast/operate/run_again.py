"""Run again: submit a new run like an earlier one. The earlier run is not changed."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.builds import builds
from holdfast.pipelines.rerun import rerun_pipeline
from holdfast.runs import audit
from holdfast.runs.snapshot import get_snapshot
from holdfast.runs.submission import Submission, with_dependencies_of
from holdfast.runs.submit import submit_one
from holdfast.store.transaction import Transaction
from holdfast.support.errors import InvalidPolicy, Unreadable
from holdfast.values.policies import Policy


def run_again(
    tx: Transaction,
    run_id: str,
    *,
    by: str | None = None,
    idempotency_key: str | None = None,
    bulk: str | None = None,
    allowed: Callable[[str, Policy], None],
) -> str:
    """Submit a new run with the job, arguments and options of this one, and return its id. A build is rebuilt.

    `allowed` raises if only the application's code may start runs of this job.
    """
    new = _again(tx, run_id, idempotency_key=idempotency_key, allowed=allowed)
    audit.record(tx, by, "again", run_id=run_id, run=new, bulk=bulk)
    return new


def _again(tx: Transaction, run_id: str, *, idempotency_key: str | None, allowed: Callable[[str, Policy], None]) -> str:
    old = get_snapshot(tx, run_id)
    if old.unreadable is not None:
        raise Unreadable(f"run {run_id} can't be run again: {old.unreadable}")
    if old.kind == "build":
        return builds.rebuild_now(tx, run_id, allowed=allowed)
    if old.kind == "pipeline":
        return rerun_pipeline(tx, run_id, idempotency_key=idempotency_key, allowed=allowed)
    allowed(old.job, old.policy)
    if old.kind in ("stage", "segment"):
        raise InvalidPolicy(
            f"run {run_id} is part of a pipeline and can't be run again alone; rerun the pipeline from its stage: "
            f"hf.pipelines.rerun({old.parent_id!r}, from_stage={old.stage!r})"
        )
    row = tx.one("find_snapshots", ids=[run_id])
    assert row is not None
    new = Submission(
        run_id=tx.new_id(),
        job=old.job,
        queue=old.queue,
        priority=old.priority,
        key=old.key,
        args=row["args"],
        policy=old.policy,
        tags=row["tags"],
        idempotency_key=idempotency_key,
        again_of=old.id,
    )
    return submit_one(tx, with_dependencies_of(tx, new, run_id))
