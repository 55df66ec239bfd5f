"""Logbook: a line of the log for each attempt, and what no worker serves.

warning   an attempt failed, ran out of time, or is tried again; queues of the application that no one serves
debug     it started; it ended in any other way
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from holdfast import workers
from holdfast.engine import Holdfast
from holdfast.outcomes import Cancelled, Failed, HandBack, Outcome, Succeeded, TimedOut, TryLater, gist
from holdfast.pipelines import Pipeline
from holdfast.stage_jobs import Collector
from holdfast.worker.running import Running

log = logging.getLogger("holdfast.worker")

FEW = 3  # jobs of a queue that are named


def started(running: Running) -> None:
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s starts", _attempt(running))


def ended(running: Running, outcome: Outcome) -> None:
    """Say what an attempt came to; called once its end is committed."""
    match outcome:
        case Failed(failure_type, error):
            kind = "" if failure_type == "ERROR" else f" ({failure_type})"
            _warn("%s failed%s: %s", running, kind, gist(error or "") or "it said nothing")
        case TimedOut(error):
            _warn("%s: %s", running, gist(error))
        case TryLater(error, after):
            _warn("%s failed, the next one is due in %s: %s", running, _seconds(after), gist(error))
        case _ if log.isEnabledFor(logging.DEBUG):
            log.debug("%s %s", _attempt(running), _quietly(outcome))


def unserved(hf: Holdfast, queues: Sequence[str]) -> None:
    """Warn of the queues that this application's jobs go to and no live worker serves; we serve these `queues`."""
    others: list[tuple[str, str]] = []
    for name in hf.jobs:
        job = hf.jobs[name]
        # A collector goes where its stage does; a pipeline that names no queue goes where its last stage does.
        if isinstance(job, Collector) or (isinstance(job, Pipeline) and job.options.queue == "default"):
            continue
        if job.options.queue not in queues:
            others.append((job.options.queue, name))
    alive = hf.read(workers.live) if others else []
    waiting: dict[str, list[str]] = {}
    for queue, name in others:
        if workers.unserved(alive, queue, job=name) is not None:
            waiting.setdefault(queue, []).append(name)
    if waiting:
        told = ", ".join(f"{queue} ({_few(names)})" for queue, names in sorted(waiting.items()))
        log.warning("no live worker serves these queues, so nothing in them starts: %s", told)


def _warn(line: str, running: Running, *told: str) -> None:
    if log.isEnabledFor(logging.WARNING):
        log.warning(line, _attempt(running), *told)


def _attempt(running: Running) -> str:
    ticket = running.lease.ticket
    return f"run {ticket.run_id} ({ticket.job}): try {ticket.tries} of {running.claim.policy.max_attempts}"


def _quietly(outcome: Outcome) -> str:
    match outcome:
        case Succeeded():
            return "succeeded"
        case Cancelled(reason):
            return f"was cancelled: {reason}"
        case HandBack(because):
            return f"is handed back, unused: {because}"
    return "waits for runs that it has submitted"


def _seconds(after: timedelta) -> str:
    return f"{after.total_seconds():.3g} s" if after < timedelta(minutes=2) else str(after).partition(".")[0]


def _few(names: list[str]) -> str:
    return ", ".join(names[:FEW]) + (f" and {len(names) - FEW} more" if len(names) > FEW else "")
