"""Reasons: why a run is where it is, in sentences; the first one is the most immediate.

    outcomes   how it ended
    leases     who runs it, and whether that one is still heard
    ready      what keeps workers from it
    waits      needs, builds, stages and segments; a time; its turn for a key

Whoever waits for others is told what those wait for, and that no worker is alive to move any of them.
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

FEW = 20  # of what a run needs, so many are told


NOBODY = "no worker is alive: start one with 'holdfast worker'"


_ENDED = {"succeeded": "succeeded", "failed": "failed", "cancelled": "was cancelled", "timed_out": "timed out"}


Alive = Sequence[WorkerInfo]


def explain(tx: Transaction, run_id: str) -> Why:
    run, alive = get_snapshot(tx, run_id), workers.live(tx)
    reasons = _reasons(tx, run, alive, few=FEW)
    if run.place in ("waits", "ready") and not alive and not any("no worker is alive" in one for one in reasons):
        reasons.append(NOBODY)
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
    raise RunNotFound(f"run {run.id} stands in no place; 'holdfast verify' says more")


def _first(tx: Transaction, run_id: str, alive: Alive) -> str:
    """The most immediate reason of a run that another one waits for."""
    return _reasons(tx, get_snapshot(tx, run_id), alive, few=1)[0]


def _ended(run: Snapshot) -> str:
    error = last_line(run.error or "")
    told = [None if error and run.failure_type in _PLAIN else run.failure_type, error]
    return ": ".join([f"it {_ENDED[run.state]} at {_time(run.finished_at)}", *(one for one in told if one)])


_PLAIN = ("ERROR", "TIMED_OUT", "CANCELLED")  # these add nothing to the state


def _running(tx: Transaction, run: Snapshot, alive: Alive) -> list[str]:
    if run.expires_at is not None and run.expires_at < tx.now:
        reasons = [f"its worker {run.holder} {_silent(run.expires_at, alive)}"]
    else:
        reasons = [
            f"it runs on {run.holder} since {_time(run.started_at)}; its lease lasts until {_time(run.expires_at)}"
        ]
    if run.cancel_requested_at is not None:
        reasons.append(f"it was asked to stop at {_time(run.cancel_requested_at)}")
    if run.deadline_at is not None:
        reasons.append(f"its window ends at {_time(run.deadline_at)}")
    return reasons


def _ready(tx: Transaction, run: Snapshot, alive: Alive) -> str:
    """Nothing holds it but the want of a worker."""
    queue = tx.one("find_queue", name=run.queue)
    if queue is not None and queue["paused_at"] is not None:
        note = f" ({queue['note']})" if queue["note"] else ""
        return f"queue {run.queue} is paused since {_time(queue['paused_at'])}{note}"
    ahead = tx.one("count_ahead", queue=run.queue, run_id=run.id)
    count = 0 if ahead is None else ahead["ahead"]
    before = f"{count} ready run{'s go' if count > 1 else ' goes'} before it" if count else "it is next"
    if queue is not None and queue["concurrency"] is not None:
        held = tx.all("find_placed", queue=run.queue)
        if len(held) >= queue["concurrency"]:
            who = " and ".join(row["run_id"] for row in held[:3]) + (" and others" if len(held) > 3 else "")
            all_of = f"all {queue['concurrency']} places" if queue["concurrency"] > 1 else "the one place"
            are = "are taken, by runs" if queue["concurrency"] > 1 else "is taken, by run"
            return f"{all_of} of queue {run.queue} {are} {who}; {before}"
    if not alive:
        return NOBODY
    knowing = [worker for worker in alive if run.job in worker.jobs]
    if not knowing:
        return f"no live worker knows job {run.job}"
    serving = [worker for worker in knowing if run.queue in worker.queues]
    if not serving:
        return f"no live worker that knows job {run.job} serves queue {run.queue}"
    claiming = [worker for worker in serving if worker.claims]
    if not claiming:
        who = " and ".join(worker.id for worker in serving[:3])
        return f"{who}, which could start it, is about to end and claims no more: start another worker"
    serving = claiming
    busy = {row["holder"]: row["held"] for row in tx.all("count_leases")}
    full = [worker for worker in serving if busy.get(worker.id, 0) >= worker.concurrency]
    if len(full) == len(serving) and run.queue != OPERATIONS:  # a worker does those beside its other runs
        places = sum(worker.concurrency for worker in serving)
        return f"all {places} places of {len(serving)} worker{'s' if len(serving) > 1 else ''} are taken; {before}"
    return f"it can be claimed at any moment; {before}"


def _waiting(tx: Transaction, run: Snapshot, alive: Alive, *, few: int) -> list[str]:
    reasons = [_part(tx, sentence, run_id, alive) for sentence, run_id in stages.waiting(tx, run)[:few]]
    if not reasons:
        reasons = [_need(tx, need, alive) for need in tx.all("find_needs_of", run_id=run.id, limit=few)]
    for ask in tx.all("find_asks_of", run_id=run.id):
        reasons.append(f"it waits for {_build(ask)}; {_soon('gets or creates it', alive)}")
    if run.due_at is not None:
        reasons.append(_due(run))
    if run.key is not None and not reasons:
        reasons.append(_turn(tx, run, alive))
    begun = run.tries if run.due_at is not None else run.attempt and reasons
    if run.key is not None and run.policy.key_order == "strict" and begun and _holds(tx, run):
        reasons.append(f"it keeps key {run.key} until then (key_order='strict')")
    return reasons or [_soon("will look at it", alive)]


def _soon(what: str, alive: Alive) -> str:
    """What an orchestrator does, where there is one: each worker has its own."""
    return f"an orchestrator {what} within a tick" if alive else NOBODY


def _part(tx: Transaction, sentence: str, run_id: str | None, alive: Alive) -> str:
    return sentence if run_id is None else f"{sentence}: {_first(tx, run_id, alive)}"


def _due(run: Snapshot) -> str:
    if run.policy.rate is not None and (run.because or "").startswith("rate "):
        return f"its start is reserved for {_time(run.due_at)} by {run.because}"
    if run.tries:
        after = f", after {run.because}" if run.because else ""
        return f"try {run.tries + 1} of {run.policy.max_attempts} at {_time(run.due_at)}{after}"
    return f"it is due at {_time(run.due_at)}" + (f": {run.because}" if run.because else "")


def _holds(tx: Transaction, run: Snapshot) -> bool:
    return any(hold["run_id"] == run.id for hold in tx.all("find_holds", key=run.key))


def _need(tx: Transaction, need: Row, alive: Alive) -> str:
    is_build = need["kind"] == "build"
    which = f"it waits for {_build(need)}" if is_build else f"it needs run {need['needed']} ({need['job']})"
    match need["state"]:
        case "running" if need["expires_at"] is not None and need["expires_at"] < tx.now:
            return f"{which}, whose worker {need['holder']} {_silent(need['expires_at'], alive)}"
        case "running" if is_build:
            return f"{which}, which is building on {need['holder']} since {_time(need['started_at'])}"
        case "running":
            return f"{which}, which is running"
        case "queued" if is_build:
            return f"{which}, which is queued: {_first(tx, need['needed'], alive)}"
        case "queued":
            return f"{which}, which is queued"
        case ended:
            return f"{which}, which has {_HAS.get(ended, ended)}; {_soon('sees it', alive)}"


_HAS = {"cancelled": "been cancelled", "timed_out": "timed out"}


def _silent(expired_at: datetime, alive: Alive) -> str:
    who = "a live worker takes it over" if alive else "no worker is alive to take it over: start one"
    return f"has been silent: its lease ran out at {_time(expired_at)}; {who}"


def _build(row: Row) -> str:
    """A build for people: its run, and the beginning of its fingerprint; one that was replaced has only its run."""
    run = f" (run {row['needed']})" if "needed" in row else ""
    if row["scope"] is None:
        return f"an earlier build of {row['job']}{run}"
    cut = "…" if len(row["fingerprint"]) > 12 else ""
    return f"build {row['job']} {row['scope']} {row['fingerprint'][:12]}{cut}{run}"


def _turn(tx: Transaction, run: Snapshot, alive: Alive) -> str:
    held = [hold for hold in tx.all("find_holds", key=run.key) if hold["run_id"] is not None]
    if len(held) < run.policy.key_limit:
        return f"key {run.key} is between two turns; {_soon('hands it on', alive)}"
    found = tx.one("count_waiting_before", key=run.key, run_id=run.id)
    ahead = 0 if found is None else found["ahead"]
    before = f"; {ahead} older run{'s wait' if ahead > 1 else ' waits'} for it too" if ahead else ""
    holders = " and ".join(_holder(hold, tx.now, alive) for hold in held[:3]) + (" and others" if len(held) > 3 else "")
    return f"key {run.key} is held by {holders}{before}"


def _holder(hold: Row, now: datetime, alive: Alive) -> str:
    if hold["holder"] is None and hold["waits"] is not None:
        meanwhile = "for what it needs" if hold["due_at"] is None else f"until {_time(hold['due_at'])}"
        return f"run {hold['run_id']}, which waits {meanwhile} and keeps it (key_order='strict')"
    if hold["holder"] is None:
        return f"run {hold['run_id']}, which is ready but has not started"
    if hold["expires_at"] < now:
        return f"run {hold['run_id']}, whose worker {hold['holder']} {_silent(hold['expires_at'], alive)}"
    return f"run {hold['run_id']} on {hold['holder']} until {_time(hold['expires_at'])}"


def _time(at: Any) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC") if isinstance(at, datetime) else "?"
