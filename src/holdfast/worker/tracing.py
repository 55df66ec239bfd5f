"""Tracing: one span per attempt, with its outcome."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

from holdfast.runs.claim import ClaimedRun
from holdfast.runs.outcomes import Failed, Outcome, RetryLater, TimedOut
from holdfast.support import telemetry
from holdfast.support.redaction import Redactor
from holdfast.support.telemetry import Span

UNTRACED: AbstractContextManager[None] = nullcontext()


def attempt(claimed: ClaimedRun, redactor: Redactor) -> AbstractContextManager[Span | None]:
    """Return the span of this attempt as a context manager; it yields None if tracing is off."""
    if telemetry.API not in sys.modules or not telemetry.traces():
        return UNTRACED
    entry = claimed.lease.entry
    attributes = {
        "messaging.system": "holdfast",
        "messaging.operation.type": "process",
        "messaging.destination.name": entry.queue,
        "messaging.message.id": entry.run_id,
        "holdfast.job": entry.job,
        "holdfast.run_id": entry.run_id,
        "holdfast.queue": entry.queue,
        "holdfast.claim": entry.claim,
        "holdfast.attempt": entry.attempt,
    }
    return telemetry.run(claimed.traceparent, f"run {entry.job}", attributes, redactor.text)


def ended(span: Span | None, outcome: Outcome | None) -> None:
    """Set the outcome of the span; None stands for a lost lease."""
    if span is None:
        return
    match outcome:
        case None:
            span.ended("lease_lost", "the lease was lost, so this attempt was not stored")
        case Failed(failure_type, error):
            span.ended(outcome.word, error or failure_type)
        case TimedOut(error) | RetryLater(error):
            span.ended(outcome.word, error)
        case _:
            span.ended(outcome.word, None)
