"""Inspections: questions that a person asks. All of it reads; only `again` submits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast import builds, codec, events, filters, news, operations, outcomes, reruns, runs, steps
from holdfast.errors import InvalidArguments, InvalidPolicy, Unreadable
from holdfast.events import Event
from holdfast.policies import Policy
from holdfast.runs import Snapshot
from holdfast.store.store import Store
from holdfast.store.transaction import Row, Transaction
from holdfast.submissions import Submission


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that must never be."""

    problem: str
    run_id: str
    detail: str


def list_runs(
    tx: Transaction,
    *,
    state: str | None,
    job: str | None,
    queue: str | None,
    tag: tuple[str, str] | None,
    parent: str | None,
    parts: bool,
    limit: int,
    before: str | None,
) -> list[Snapshot]:
    if state is not None and state not in filters.STATES:
        raise InvalidArguments(f"there is no state {state!r}; a run is {', '.join(filters.STATES)}")
    rows = tx.all(
        "list_runs",
        state=state,
        job=job,
        queue=queue,
        tag=None if tag is None else filters.like(tag),
        parent_id=parent,
        parts=int(parts),
        limit=limit,
        before=before or "~",
    )
    return [runs.snapshot(row) for row in rows]


def cancel(tx: Transaction, run_id: str, *, reason: str, by: str | None = None, bulk: str | None = None) -> str:
    """End a run or ask it to stop, and write down who did; its state afterwards."""
    codec.check_text(reason, what="reason")
    state = runs.cancel(tx, run_id, reason=reason)
    operations.record(tx, by, "cancel", run_id=run_id, reason=reason, state=state, bulk=bulk)
    return state


def again(
    tx: Transaction,
    run_id: str,
    *,
    by: str | None = None,
    idempotency_key: str | None = None,
    bulk: str | None = None,
    allowed: Callable[[str, Policy], None],
) -> str:
    """Submit a new run with the job, arguments and options of this one; a build is built anew.

    `allowed` raises if no one but the application may start runs of that job with that policy.
    """
    new = _again(tx, run_id, idempotency_key=idempotency_key, allowed=allowed)
    operations.record(tx, by, "again", run_id=run_id, run=new, bulk=bulk)
    return new


def _again(tx: Transaction, run_id: str, *, idempotency_key: str | None, allowed: Callable[[str, Policy], None]) -> str:
    old = runs.get(tx, run_id)
    if old.unreadable is not None:
        raise Unreadable(f"run {run_id} can't be run again: {old.unreadable}")
    if old.kind == "build":
        return builds.rebuild(tx, run_id, allowed=allowed)
    if old.kind == "pipeline":
        return reruns.rerun(tx, run_id, idempotency_key=idempotency_key, allowed=allowed)
    allowed(old.job, old.policy)
    if old.kind in ("stage", "segment"):
        raise InvalidPolicy(
            f"run {run_id} is part of a pipeline; do that again from its stage: "
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
    answer = runs.submit(tx, [runs.waiting_like(tx, new, run_id)])[0]
    if not isinstance(answer, str):
        raise answer
    return answer


def story(tx: Transaction, run_id: str) -> list[Event]:
    """Everything that happened to a run, in order: what was recorded, and what the rows themselves prove."""
    run = runs.get(tx, run_id)
    told = [event for _, event in events.of(tx, run_id, limit=100_000)]
    told += _proved(run, told, steps.done(tx, run_id, limit=100_000))
    return sorted(told, key=lambda event: _moment(run, event))


def _moment(run: Snapshot, event: Event) -> tuple[datetime, int, int]:
    """By time; in one instant, attempt by attempt. Nothing comes before the submission: a claim that began to look
    before it and found it all the same bears the earlier time."""
    order = _ORDER.get(event.kind, 5)
    attempt = run.attempt if event.attempt is None else event.attempt
    return max(event.happened_at or run.created_at, run.created_at), attempt if order else 0, order


_ORDER = {
    "RUN_QUEUED": 0,
    "RUN_STARTED": 1,
    "STEP_STARTED": 2,
    "STEP_RETRIED": 2,
    "STEP_FORGOTTEN": 2,
    "STEP_FINISHED": 2,  # as they come: a step may begin in the instant in which the one before it ends
    "RUN_RETRIED": 6,
    "RUN_PUT_OFF": 6,
    "RUN_HANDED_BACK": 6,
    "RUN_WAITS": 6,
}
_ORDER |= dict.fromkeys(("RUN_SUCCEEDED", "RUN_FAILED", "RUN_TIMED_OUT", "RUN_CANCELLED"), 7)


def _proved(run: Snapshot, told: list[Event], finished: list[steps.StepTimes]) -> Iterator[Event]:
    yield Event(run_id=run.id, kind="RUN_QUEUED", data={"queue": run.queue}, happened_at=run.created_at)
    for event in told:
        if event.kind in news.ENDS_AN_ATTEMPT and (start := news.start_of(event)) is not None:
            yield start
    ended_by_recovery = any(event.kind == "RUN_TAKEN_OVER" and event.attempt == run.attempt for event in told)
    if run.started_at is not None and not ended_by_recovery:
        yield news.started(run.id, run.attempt, run.holder, run.started_at)
    for step in finished:
        yield from news.halves(run.id, step)
    if run.ended:
        yield news.ending(run)


def verify(store: Store, *, lease: timedelta) -> list[Finding]:
    """What must never be, found on the live database in one snapshot, and still there at a second look."""
    with store.reading() as tx:
        first = {_finding(row) for row in tx.all("verify", late_at=tx.now - 2 * lease - timedelta(seconds=10))}
    if first:
        with store.reading() as tx:
            first &= {_finding(row) for row in tx.all("verify", late_at=tx.now - 2 * lease - timedelta(seconds=10))}
    return sorted([*first, *_changed(store)], key=lambda finding: (finding.problem, finding.run_id))


def _finding(row: Row) -> Finding:
    return Finding(problem=row["problem"], run_id=row["run_id"] or "", detail=row["detail"] or "")


def _changed(store: Store) -> Iterator[Finding]:
    """Outcomes that are not as they were written."""
    after = ""
    while True:
        with store.reading() as tx:
            page = tx.all("read_outcomes", after=after, limit=5000)
        for row in page:
            if outcomes.seal(row) != row["seal"]:
                yield Finding(
                    problem="outcome_changed",
                    run_id=row["run_id"],
                    detail="the outcome is not as it was written",
                )
        if len(page) < 5000:
            return
        after = page[-1]["run_id"]
