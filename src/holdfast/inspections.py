"""Inspections: questions that a person asks. All of it reads; only `again` submits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args

from holdfast import builds, codec, events, outcomes, reruns, runs, slots, stages, steps, workers
from holdfast.errors import InvalidArguments, InvalidPolicy, RunNotFound
from holdfast.events import Event
from holdfast.runs import Snapshot
from holdfast.store.store import Store
from holdfast.store.transaction import Row, Transaction
from holdfast.submissions import Submission

FEW = 20  # of what a run needs, so many are told
STATES = ("queued", "running", *get_args(outcomes.State))


@dataclass(frozen=True, kw_only=True)
class Why:
    """Where a run stands; `reasons` are sentences, the first one the most immediate."""

    run: Snapshot
    reasons: tuple[str, ...]


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
    limit: int,
    before: str | None,
) -> list[Snapshot]:
    if state is not None and state not in STATES:
        raise InvalidArguments(f"there is no state {state!r}; a run is {', '.join(STATES)}")
    rows = tx.all(
        "list_runs",
        state=state,
        job=job,
        queue=queue,
        tag=None if tag is None else _like(tag),
        limit=limit,
        before=before or "~",
    )
    return [runs.snapshot(row) for row in rows]


def _like(tag: tuple[str, str]) -> str:
    """How a tag stands in the JSON of all of them."""
    text = codec.compact(dict([tag]))[1:-1]
    for special in "~%_[":
        text = text.replace(special, f"~{special}")
    return f"%{text}%"


def again(tx: Transaction, run_id: str) -> str:
    """Submit a new run with the job, arguments and options of this one; a build is built anew."""
    old = runs.get(tx, run_id)
    if old.kind == "build":
        return builds.rebuild(tx, run_id)
    if old.kind == "pipeline":
        return reruns.rerun(tx, run_id)
    if old.kind in ("stage", "segment"):
        raise InvalidPolicy(
            f"run {run_id} is part of a pipeline; do that again from its stage: "
            f"hf.pipelines.rerun({old.parent_id!r}, from_stage={old.stage!r})"
        )
    row = tx.one("get_run", id=run_id)
    assert row is not None
    new = Submission(
        run_id=tx.ids.new(tx.now),
        job=old.job,
        queue=old.queue,
        priority=old.priority,
        key=old.key,
        args=row["args"],
        policy=old.policy,
        tags=row["tags"],
        again_of=old.id,
        needed=old.needed,
    )
    answer = runs.submit(tx, [new])[0]
    if not isinstance(answer, str):
        raise answer
    return answer


def story(tx: Transaction, run_id: str) -> list[Event]:
    """Everything that happened to a run, in order: what was recorded, and what the rows themselves prove."""
    run = runs.get(tx, run_id)
    told = [event for _, event in events.of(tx, run_id, limit=100_000)]
    told += _proved(run, told, steps.of(tx, run_id))
    return sorted(told, key=lambda event: _moment(run, event))


def news(
    tx: Transaction, run_id: str, *, after: int, limit: int
) -> tuple[Snapshot, list[tuple[int | tuple[Any, ...], Event]]]:
    """The run, and its events since number `after`, each with a mark by which the reader knows those it has seen."""
    run = runs.get(tx, run_id)
    recorded = events.of(tx, run_id, after=after, limit=limit)
    proved = _proved(run, [event for _, event in recorded], steps.of(tx, run_id))
    found: list[tuple[int | tuple[Any, ...], Event]] = [*recorded]
    found += [((event.kind, event.attempt, event.data.get("step")), event) for event in proved]
    return run, sorted(found, key=lambda pair: _moment(run, pair[1]))


def _moment(run: Snapshot, event: Event) -> tuple[datetime, int, int]:
    """By time; in one instant, attempt by attempt."""
    order = _ORDER.get(event.kind, 5)
    attempt = run.attempt if event.attempt is None else event.attempt
    return event.happened_at or run.created_at, attempt if order else 0, order


_ORDER = {
    "RUN_QUEUED": 0,
    "RUN_STARTED": 1,
    "STEP_STARTED": 2,
    "STEP_FINISHED": 2,  # as they come: a step may begin in the instant in which the one before it ends
    "RUN_RETRIED": 6,
    "RUN_HANDED_BACK": 6,
    "RUN_WAITS": 6,
}
_ORDER |= dict.fromkeys(("RUN_SUCCEEDED", "RUN_FAILED", "RUN_TIMED_OUT", "RUN_CANCELLED"), 7)


_ENDS_AN_ATTEMPT = ("RUN_RETRIED", "RUN_WAITS", "RUN_HANDED_BACK", "RUN_TAKEN_OVER")


def _proved(run: Snapshot, told: list[Event], finished: list[steps.Step]) -> Iterator[Event]:
    yield Event(run_id=run.id, kind="RUN_QUEUED", data={"queue": run.queue}, happened_at=run.created_at)
    for event in told:
        if "started_at" in event.data and event.kind in _ENDS_AN_ATTEMPT:
            yield _started(
                run.id, event.attempt, event.data["holder"], datetime.fromisoformat(event.data["started_at"])
            )
    ended_by_recovery = any(event.kind == "RUN_TAKEN_OVER" and event.attempt == run.attempt for event in told)
    if run.started_at is not None and not ended_by_recovery:
        yield _started(run.id, run.attempt, run.holder, run.started_at)
    for step in finished:
        data = {"step": step.name}
        yield Event(run_id=run.id, kind="STEP_STARTED", attempt=step.attempt, data=data, happened_at=step.started_at)
        data = {"step": step.name, "tries": str(step.tries)}
        yield Event(run_id=run.id, kind="STEP_FINISHED", attempt=step.attempt, data=data, happened_at=step.finished_at)
    if run.ended:
        ending = {"failure_type": run.failure_type, "error": run.error} if run.failure_type else {}
        kind = f"RUN_{run.state.upper()}"
        yield Event(run_id=run.id, kind=kind, attempt=run.attempt, data=ending, happened_at=run.finished_at)


def _started(run_id: str, attempt: int | None, holder: str | None, at: datetime) -> Event:
    return Event(run_id=run_id, kind="RUN_STARTED", attempt=attempt, data={"holder": holder}, happened_at=at)


def why(tx: Transaction, run_id: str) -> Why:
    run = runs.get(tx, run_id)
    match run.place:
        case "outcomes":
            reasons = [_ended(run)]
        case "leases":
            reasons = _running(tx, run)
        case "ready":
            reasons = _ready(tx, run)
        case "waits":
            reasons = _waiting(tx, run)
        case _:
            raise RunNotFound(f"run {run_id} stands in no place; 'holdfast verify' says more")
    if run.kind == "slot":
        reasons += slots.about(tx, run)
    return Why(run=run, reasons=tuple(reasons))


def _ended(run: Snapshot) -> str:
    reason = f": {run.failure_type}" if run.failure_type else ""
    return f"it ended {run.state} at {_time(run.finished_at)}{reason}"


def _running(tx: Transaction, run: Snapshot) -> list[str]:
    if run.expires_at is not None and run.expires_at < tx.now:
        who = "a live worker takes it over" if workers.live(tx) else "no worker is alive to take it over: start one"
        reasons = [f"its worker {run.holder} has been silent: its lease ran out at {_time(run.expires_at)}; {who}"]
    else:
        reasons = [
            f"it runs on {run.holder} since {_time(run.started_at)}; its lease lasts until {_time(run.expires_at)}"
        ]
    if run.cancel_requested_at is not None:
        reasons.append(f"it was asked to stop at {_time(run.cancel_requested_at)}")
    if run.deadline_at is not None:
        reasons.append(f"its window ends at {_time(run.deadline_at)}")
    return reasons


def _ready(tx: Transaction, run: Snapshot) -> list[str]:
    """Nothing holds it but the want of a worker."""
    queue = tx.one("find_queue", name=run.queue)
    if queue is not None and queue["paused_at"] is not None:
        note = f" ({queue['note']})" if queue["note"] else ""
        return [f"queue {run.queue} is paused since {_time(queue['paused_at'])}{note}"]
    ahead = tx.one("count_ahead", queue=run.queue, run_id=run.id)
    count = 0 if ahead is None else ahead["ahead"]
    before = f"{count} ready run{'s go' if count > 1 else ' goes'} before it" if count else "it is next"
    if queue is not None and queue["concurrency"] is not None:
        held = tx.all("find_placed", queue=run.queue)
        if len(held) >= queue["concurrency"]:
            who = " and ".join(row["run_id"] for row in held[:3]) + (" and others" if len(held) > 3 else "")
            all_of = f"all {queue['concurrency']} places" if queue["concurrency"] > 1 else "the one place"
            are = "are taken, by runs" if queue["concurrency"] > 1 else "is taken, by run"
            return [f"{all_of} of queue {run.queue} {are} {who}; {before}"]
    alive = workers.live(tx)
    if not alive:
        return ["no worker is alive: start one with 'holdfast worker'"]
    knowing = [worker for worker in alive if run.job in worker.jobs]
    if not knowing:
        return [f"no live worker knows job {run.job}"]
    serving = [worker for worker in knowing if run.queue in worker.queues]
    if not serving:
        return [f"no live worker that knows job {run.job} serves queue {run.queue}"]
    busy = {row["holder"]: row["held"] for row in tx.all("count_leases")}
    full = [worker for worker in serving if busy.get(worker.id, 0) >= worker.concurrency]
    if len(full) == len(serving):
        slots = sum(worker.concurrency for worker in serving)
        return [f"all {slots} places of {len(serving)} worker{'s' if len(serving) > 1 else ''} are taken; {before}"]
    return [f"it can be claimed at any moment; {before}"]


def _waiting(tx: Transaction, run: Snapshot) -> list[str]:
    reasons = stages.waiting(tx, run)
    reasons += [] if reasons else [_need(tx, need) for need in tx.all("find_needs_of", run_id=run.id, limit=FEW)]
    for ask in tx.all("find_asks_of", run_id=run.id):
        reasons.append(f"it waits for {_build(ask)}, which an orchestrator gets or creates within a tick")
    if run.due_at is not None and run.policy.rate is not None and (run.because or "").startswith("rate "):
        reasons.append(f"its start is reserved for {_time(run.due_at)} by {run.because}")
    elif run.due_at is not None:
        reasons.append(f"it is due at {_time(run.due_at)}" + (f": {run.because}" if run.because else ""))
    if run.key is not None and not reasons:
        reasons.append(_turn(tx, run))
    begun = run.tries if run.due_at is not None else run.attempt and reasons
    if run.key is not None and run.policy.key_order == "strict" and begun and _holds(tx, run):
        reasons.append(f"it keeps key {run.key} until then (key_order='strict')")
    return reasons or ["an orchestrator will look at it within a tick"]


def _holds(tx: Transaction, run: Snapshot) -> bool:
    return any(hold["run_id"] == run.id for hold in tx.all("find_holds", key=run.key))


def _need(tx: Transaction, need: Row) -> str:
    if need["kind"] != "build":
        return f"it needs run {need['needed']} ({need['job']}), which is {need['state']}"
    which = f"it waits for {_build(need)}"
    match need["state"]:
        case "running":
            return f"{which}, which is building on {need['holder']} since {_time(need['started_at'])}"
        case "queued":
            return f"{which}, which is queued: {why(tx, need['needed']).reasons[0]}"
        case ended:
            return f"{which}, which has {ended}; an orchestrator sees it within a tick"


def _build(row: Row) -> str:
    """A build for people: its run, and the beginning of its fingerprint; one that was replaced has only its run."""
    run = f" (run {row['needed']})" if "needed" in row else ""
    if row["scope"] is None:
        return f"an earlier build of {row['job']}{run}"
    cut = "…" if len(row["fingerprint"]) > 12 else ""
    return f"build {row['job']} {row['scope']} {row['fingerprint'][:12]}{cut}{run}"


def _turn(tx: Transaction, run: Snapshot) -> str:
    held = [hold for hold in tx.all("find_holds", key=run.key) if hold["run_id"] is not None]
    if len(held) < run.policy.key_limit:
        return f"key {run.key} is between two turns; an orchestrator hands it on within a tick"
    found = tx.one("count_waiting_before", key=run.key, run_id=run.id)
    ahead = 0 if found is None else found["ahead"]
    before = f"; {ahead} older run{'s wait' if ahead > 1 else ' waits'} for it too" if ahead else ""
    holders = " and ".join(_holder(hold) for hold in held[:3]) + (" and others" if len(held) > 3 else "")
    return f"key {run.key} is held by {holders}{before}"


def _holder(hold: Row) -> str:
    if hold["holder"] is None:
        return f"run {hold['run_id']}, which is ready but has not started"
    return f"run {hold['run_id']} on {hold['holder']} until {_time(hold['expires_at'])}"


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


def _time(at: Any) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC") if isinstance(at, datetime) else "?"
