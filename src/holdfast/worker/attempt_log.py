"""One log line per attempt, warnings about unserved queues, and the application's failure hooks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from queue import SimpleQueue

from holdfast.pipelines.pipeline import Pipeline
from holdfast.pipelines.stage_jobs import Collector
from holdfast.runs import workers
from holdfast.runs.outcomes import Cancelled, Failed, Outcome, Release, RetryLater, Succeeded, TimedOut
from holdfast.runs.snapshot import get_snapshot
from holdfast.runtime import Runtime
from holdfast.support import django_bridge
from holdfast.values.runs import last_line
from holdfast.values.workers import why_unserved
from holdfast.worker.declarations import FailureHook
from holdfast.worker.in_flight import RunInFlight

log = logging.getLogger("holdfast.worker")

FEW = 3  # jobs of a queue that are named


class FailureHooks:
    """Calls the application's functions for runs that failed, in a thread of their own."""

    def __init__(self, runtime: Runtime, hooks: Sequence[FailureHook]) -> None:
        self._runtime, self._hooks = runtime, hooks
        self._failed: SimpleQueue[str | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def ended(self, running: RunInFlight, outcome: Outcome) -> None:
        if self._hooks and isinstance(outcome, Failed | TimedOut):
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="holdfast-hooks", daemon=True)
                self._thread.start()
            self._failed.put(running.lease.run_id)

    def close(self) -> None:
        if self._thread is not None:
            self._failed.put(None)
            self._thread.join(timeout=5)

    def _serve(self) -> None:
        while (run_id := self._failed.get()) is not None:
            django_bridge.close_old_connections()
            for hook in self._hooks:
                try:
                    hook(self._runtime.read(partial(get_snapshot, run_id=run_id)))
                except Exception:
                    log.exception("a failure hook failed for run %s", run_id)
            django_bridge.close_old_connections()
        django_bridge.close_connections()


def started(running: RunInFlight) -> None:
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s starts", _attempt(running))


def ended(running: RunInFlight, outcome: Outcome) -> None:
    """Say what an attempt came to; called once its end is committed."""
    match outcome:
        case Failed(failure_type, error):
            kind = "" if failure_type == "ERROR" else f" ({failure_type})"
            _warn("%s failed%s: %s", running, kind, last_line(error or "") or "it said nothing")
        case TimedOut(error):
            _warn("%s: %s", running, last_line(error))
        case RetryLater(error, after):
            _warn("%s failed, the next one is due in %s: %s", running, _seconds(after), last_line(error))
        case _ if log.isEnabledFor(logging.DEBUG):
            log.debug("%s %s", _attempt(running), _quietly(outcome))


def unserved(runtime: Runtime, queues: Sequence[str]) -> None:
    """Warn of the queues that this application's jobs go to and no live worker serves; we serve these `queues`."""
    others: list[tuple[str, str]] = []
    for name in runtime.jobs:
        job = runtime.jobs[name]
        # A collector goes where its stage does; a pipeline that names no queue goes where its last stage does.
        if isinstance(job, Collector) or (isinstance(job, Pipeline) and job.options.queue == "default"):
            continue
        if job.options.queue not in queues:
            others.append((job.options.queue, name))
    alive = runtime.read(workers.live) if others else []
    waiting: dict[str, list[str]] = {}
    for queue, name in others:
        if why_unserved(alive, queue, job=name) is not None:
            waiting.setdefault(queue, []).append(name)
    if waiting:
        told = ", ".join(f"{queue} ({_few(names)})" for queue, names in sorted(waiting.items()))
        log.warning("no live worker serves these queues, so nothing in them starts: %s", told)


def _warn(line: str, running: RunInFlight, *told: str) -> None:
    if log.isEnabledFor(logging.WARNING):
        log.warning(line, _attempt(running), *told)


def _attempt(running: RunInFlight) -> str:
    ticket = running.lease.ticket
    return f"run {ticket.run_id} ({ticket.job}): try {ticket.tries} of {running.claim.policy.max_attempts}"


def _quietly(outcome: Outcome) -> str:
    match outcome:
        case Succeeded():
            return "succeeded"
        case Cancelled(reason):
            return f"was cancelled: {reason}"
        case Release(because):
            return f"is released, no attempt used: {because}"
    return "waits for runs that it has submitted"


def _seconds(after: timedelta) -> str:
    return f"{after.total_seconds():.3g} s" if after < timedelta(minutes=2) else str(after).partition(".")[0]


def _few(names: list[str]) -> str:
    return ", ".join(names[:FEW]) + (f" and {len(names) - FEW} more" if len(names) > FEW else "")
