"""Explain: why a run is in its state, in sentences; the most immediate reason comes first.

    outcomes   how it ended
    leases     which worker runs it, and whether that worker still renews its lease
    ready      why no worker has claimed it yet
    waits      its dependencies, builds, stages or segments; a time; its key

If a run waits for other runs, the reasons also say what those wait for. If no worker is alive, they say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.jobs.registry import OPERATIONS
from holdfast.pipelines import stages
from holdfast.runs import workers
from holdfast.runs.snapshot import get_snapshot
from holdfast.schedules import slots
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.errors import RunNotFound
from holdfast.values.runs import Snapshot, Why, last_line
from holdfast.values.workers import WorkerInfo

FEW = 20  # how many dependencies of a run are explained


NO_WORKER = "no worker is alive: start one with 'holdfast worker'"


_ENDED = {"succeeded": "succeeded", "failed": "failed", "cancelled": "was cancelled", "timed_out": "timed out"}


Alive = Sequence[WorkerInfo]


def explain(tx: Transaction, run_id: str) -> Why:
    """Return a run with the reasons for its state, or raise RunNotFound."""
    run, alive = get_snapshot(tx, run_id), workers.live(tx)
    reasons = _reasons(tx, run, alive, few=FEW)
    if run.place in ("waits", "ready") and not alive and not any("no worker is alive" in one for one in reasons):
        reasons.append(NO_WORKER)
    if run.kind == "slot":
        reasons += slots.about(tx, run)
    if run.unreadable is not None:
        reasons.insert(0, json_text.marker(run.unreadable))
    return Why(run=run, reasons=tuple(reasons))


def _reasons(tx: Transaction, run: Snapshot, alive: Alive, *, few: int) -> list[str]:
    match run.place:
        case "outcomes":
            return [_ended(run)]
        case "leases":
            return _running(tx, run, alive)
        case "ready":
            return [_ready(tx, run, alive)]
        case "waits":
            return _waiting(tx, run, alive, few=few)
    raise RunNotFound(f"run {run.id} has no state; run 'holdfast verify' to see what is wrong")


def _first(tx: Transaction, run_id: str, alive: Alive) -> str:
    """Return the most immediate reason of a run that another run waits for."""
    return _reasons(tx, get_snapshot(tx, run_id), alive, few=1)[0]


def _ended(run: Snapshot) -> str:
    error = last_line(run.error or "")
    details = [None if error and run.failure_type in _PLAIN else run.failure_type, error]
    return ": ".join([f"it {_ENDED[run.state]} at {_time(run.finished_at)}", *(one for one in details if one)])


_PLAIN = ("ERROR", "TIMED_OUT", "CANCELLED")  # failure types that add nothing to the state


def _running(tx: Transaction, run: Snapshot, alive: Alive) -> list[str]:
    if run.expires_at is not None and run.expires_at < tx.now:
        reasons = [f"its worker {run.holder} {_lost(run.expires_at, alive)}"]
    else:
        reasons = [
            f"it has been running on {run.holder} since {_time(run.started_at)}; "
            f"its lease lasts until {_time(run.expires_at)}"
        ]
    if run.cancel_requested_at is not None:
        reasons.append(f"it was asked to stop at {_time(run.cancel_requested_at)}")
    if run.deadline_at is not None:
        reasons.append(f"it times out at {_time(run.deadline_at)}")
    return reasons


def _ready(tx: Transaction, run: Snapshot, alive: Alive) -> str:
    """Say why no worker has claimed a ready run yet."""
    queue = tx.one("find_queue", name=run.queue)
    if queue is not None and queue["paused_at"] is not None:
        note = f" ({queue['note']})" if queue["note"] else ""
        return f"queue {run.queue} has been paused since {_time(queue['paused_at'])}{note}"
    ahead = tx.one("count_ahead", queue=run.queue, run_id=run.id)
    count = 0 if ahead is None else ahead["ahead"]
    before = f"{count} ready run{'s go' if count > 1 else ' goes'} before it" if count else "it is next"
    if queue is not None and queue["concurrency"] is not None:
        held = tx.all("find_permits_of", queue=run.queue)
        if len(held) >= queue["concurrency"]:
            running = " and ".join(row["run_id"] for row in held[:3]) + (" and others" if len(held) > 3 else "")
            runs = "runs" if len(held) > 1 else "run"
            limit = f"queue {run.queue} has reached its concurrency of {queue['concurrency']}"
            return f"{limit} with {runs} {running}; {before}"
    if not alive:
        return NO_WORKER
    knowing = [worker for worker in alive if run.job in worker.jobs]
    if not knowing:
        return f"no live worker knows job {run.job}"
    serving = [worker for worker in knowing if run.queue in worker.queues]
    if not serving:
        return f"no live worker that knows job {run.job} serves queue {run.queue}"
    claiming = [worker for worker in serving if worker.claims]
    if not claiming:
        stopping = " and ".join(worker.id for worker in serving[:3])
        are = "are" if len(serving) > 1 else "is"
        return f"{stopping} could start it, but {are} shutting down; start another worker"
    busy = {row["holder"]: row["held"] for row in tx.all("count_leases")}
    full = [worker for worker in claiming if busy.get(worker.id, 0) >= worker.concurrency]
    if len(full) == len(claiming) and run.queue != OPERATIONS:  # bulk operations do not count for concurrency
        total = sum(worker.concurrency for worker in claiming)
        count_of = f"{len(claiming)} worker{'s' if len(claiming) > 1 else ''}"
        return f"all workers that could start it are busy ({count_of}, concurrency {total}); {before}"
    return f"it can be claimed at any moment; {before}"


def _waiting(tx: Transaction, run: Snapshot, alive: Alive, *, few: int) -> list[str]:
    reasons = [_part(tx, sentence, run_id, alive) for sentence, run_id in stages.waiting(tx, run)[:few]]
    if not reasons:
        rows = tx.all("find_dependencies_of", run_id=run.id, limit=few)
        reasons = [_dependency(tx, row, alive) for row in rows]
    for request in tx.all("find_build_requests_of", run_id=run.id):
        reasons.append(f"it waits for {_build(request)}; {_soon('get or create it', alive)}")
    if run.due_at is not None:
        reasons.append(_due(run))
    if run.key is not None and not reasons:
        reasons.append(_key(tx, run, alive))
    started = run.attempt if run.due_at is not None else run.claim and reasons
    if run.key is not None and run.policy.key_order == "strict" and started and _holds(tx, run):
        reasons.append(f"it keeps key {run.key} until then (key_order='strict')")
    return reasons or [_soon("check it", alive)]


def _soon(action: str, alive: Alive) -> str:
    """Say what an orchestrator will do. Each worker process has an orchestrator, so one is alive if a worker is."""
    return f"an orchestrator will {action} shortly" if alive else NO_WORKER


def _part(tx: Transaction, sentence: str, run_id: str | None, alive: Alive) -> str:
    return sentence if run_id is None else f"{sentence}: {_first(tx, run_id, alive)}"


def _due(run: Snapshot) -> str:
    if run.policy.rate is not None and (run.reason or "").startswith("rate "):
        return f"its start is reserved for {_time(run.due_at)} by {run.reason}"
    if run.attempt:
        after = f", after {run.reason}" if run.reason else ""
        return f"attempt {run.attempt + 1} of {run.policy.max_attempts} is due at {_time(run.due_at)}{after}"
    return f"it is due at {_time(run.due_at)}" + (f": {run.reason}" if run.reason else "")


def _holds(tx: Transaction, run: Snapshot) -> bool:
    return any(lock["run_id"] == run.id for lock in tx.all("find_key_locks", key=run.key))


def _dependency(tx: Transaction, row: Row, alive: Alive) -> str:
    is_build = row["kind"] == "build"
    sentence = f"it waits for {_build(row)}" if is_build else f"it depends on run {row['depends_on']} ({row['job']})"
    match row["state"]:
        case "running" if row["expires_at"] is not None and row["expires_at"] < tx.now:
            return f"{sentence}, whose worker {row['holder']} {_lost(row['expires_at'], alive)}"
        case "running" if is_build:
            return f"{sentence}, which has been building on {row['holder']} since {_time(row['started_at'])}"
        case "running":
            return f"{sentence}, which is running"
        case "queued" if is_build:
            return f"{sentence}, which is queued: {_first(tx, row['depends_on'], alive)}"
        case "queued":
            return f"{sentence}, which is queued"
        case ended:
            return f"{sentence}, which has {_HAS.get(ended, ended)}; {_soon('continue it', alive)}"


_HAS = {"cancelled": "been cancelled", "timed_out": "timed out"}


def _lost(expired_at: datetime, alive: Alive) -> str:
    takeover = "another worker will take it over" if alive else "no worker is alive to take it over: start one"
    return f"has been lost: its lease expired at {_time(expired_at)}; {takeover}"


def _build(row: Row) -> str:
    """Name a build by its job, scope and the start of its fingerprint. A build that was replaced has only its run."""
    run = f" (run {row['depends_on']})" if "depends_on" in row else ""
    if row["scope"] is None:
        return f"an earlier build of {row['job']}{run}"
    cut = "…" if len(row["fingerprint"]) > 12 else ""
    return f"build {row['job']} {row['scope']} {row['fingerprint'][:12]}{cut}{run}"


def _key(tx: Transaction, run: Snapshot, alive: Alive) -> str:
    locks = [lock for lock in tx.all("find_key_locks", key=run.key) if lock["run_id"] is not None]
    if len(locks) < run.policy.key_limit:
        return f"key {run.key} is free; {_soon('give it to the oldest run', alive)}"
    row = tx.one("count_waiting_before", key=run.key, run_id=run.id)
    ahead = 0 if row is None else row["ahead"]
    before = f"; {ahead} older run{'s wait' if ahead > 1 else ' waits'} for it too" if ahead else ""
    others = " and others" if len(locks) > 3 else ""
    holders = " and ".join(_holder(lock, tx.now, alive) for lock in locks[:3]) + others
    return f"key {run.key} is held by {holders}{before}"


def _holder(lock: Row, now: datetime, alive: Alive) -> str:
    if lock["holder"] is None and lock["waits"] is not None:
        waits = "waits for its dependencies" if lock["due_at"] is None else f"waits until {_time(lock['due_at'])}"
        return f"run {lock['run_id']}, which {waits} and keeps the key (key_order='strict')"
    if lock["holder"] is None:
        return f"run {lock['run_id']}, which is ready but has not started"
    if lock["expires_at"] < now:
        return f"run {lock['run_id']}, whose worker {lock['holder']} {_lost(lock['expires_at'], alive)}"
    return f"run {lock['run_id']} on {lock['holder']} until {_time(lock['expires_at'])}"


def _time(at: Any) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC") if isinstance(at, datetime) else "?"
