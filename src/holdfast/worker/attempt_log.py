"""Attempt log: one log line per attempt, warnings about unserved queues, and the application's failure hooks."""

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

MAX_NAMES = 3  # how many jobs of a queue a warning lists


class FailureHooks:
    """Calls the application's failure hooks in a separate thread."""

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
                    log.exception("run %s: a failure hook raised an error", run_id)
            django_bridge.close_old_connections()
        django_bridge.close_connections()


def started(running: RunInFlight) -> None:
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s starts", _attempt(running))


def ended(running: RunInFlight, outcome: Outcome) -> None:
    """Log the outcome of an attempt, after it is committed."""
    match outcome:
        case Failed(failure_type, error):
            kind = "" if failure_type == "ERROR" else f" ({failure_type})"
            _warn("%s failed%s: %s", running, kind, last_line(error or "") or "no error message")
        case TimedOut(error):
            _warn("%s: %s", running, last_line(error))
        case RetryLater(error, after):
            _warn("%s failed; the next attempt starts in %s: %s", running, _seconds(after), last_line(error))
        case _ if log.isEnabledFor(logging.DEBUG):
            log.debug("%s %s", _attempt(running), _describe(outcome))


def unserved(runtime: Runtime, queues: Sequence[str]) -> None:
    """Warn about queues that this application's jobs use but no live worker serves. This worker serves `queues`."""
    others: list[tuple[str, str]] = []
    for name in runtime.jobs:
        job = runtime.jobs[name]
        # A collector uses the queue of its stage. A pipeline without a queue uses the queue of its last stage.
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
        text = ", ".join(f"{queue} ({_shortened(names)})" for queue, names in sorted(waiting.items()))
        log.warning("no live worker serves these queues, so their runs can't start: %s", text)


def _warn(line: str, running: RunInFlight, *values: str) -> None:
    if log.isEnabledFor(logging.WARNING):
        log.warning(line, _attempt(running), *values)


def _attempt(running: RunInFlight) -> str:
    entry = running.lease.entry
    return f"run {entry.run_id} ({entry.job}): attempt {entry.attempt} of {running.claimed.policy.max_attempts}"


def _describe(outcome: Outcome) -> str:
    match outcome:
        case Succeeded():
            return "succeeded"
        case Cancelled(reason):
            return f"was cancelled: {reason}"
        case Release(reason):
            return f"was released without using up the attempt: {reason}"
    return "waits for its children"


def _seconds(after: timedelta) -> str:
    return f"{after.total_seconds():.3g} s" if after < timedelta(minutes=2) else str(after).partition(".")[0]


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")
