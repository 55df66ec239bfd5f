"""Tracing: an attempt as a span, and what its outcome means for it."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

from holdfast.runs.claim import Claim
from holdfast.runs.outcomes import Failed, Outcome, RetryLater, TimedOut
from holdfast.support import telemetry
from holdfast.support.redaction import Redactor
from holdfast.support.telemetry import Span

UNTRACED: AbstractContextManager[None] = nullcontext()


def attempt(claim: Claim, redactor: Redactor) -> AbstractContextManager[Span | None]:
    """The span of this attempt, in which its work is done; None where no one looks."""
    if telemetry.API not in sys.modules or not telemetry.traces():
        return UNTRACED
    ticket = claim.lease.ticket
    attributes = {
        "messaging.system": "holdfast",
        "messaging.operation.type": "process",
        "messaging.destination.name": ticket.queue,
        "messaging.message.id": ticket.run_id,
        "holdfast.job": ticket.job,
        "holdfast.run_id": ticket.run_id,
        "holdfast.queue": ticket.queue,
        "holdfast.attempt": ticket.attempt,
        "holdfast.try": ticket.tries,
    }
    return telemetry.run(claim.trace, f"run {ticket.job}", attributes, redactor.text)


def ended(span: Span | None, outcome: Outcome | None) -> None:
    """Tell the span how the attempt came out; no outcome is a lost lease."""
    if span is None:
        return
    match outcome:
        case None:
            span.ended("lease_lost", "the lease was lost; nothing of this attempt was written")
        case Failed(failure_type, error):
            span.ended(outcome.word, error or failure_type)
        case TimedOut(error) | RetryLater(error):
            span.ended(outcome.word, error)
        case _:
            span.ended(outcome.word, None)
