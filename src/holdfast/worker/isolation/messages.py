"""Messages: conversions between values and the JSON that the worker and a run's process exchange."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.runs.claim import ClaimedRun
from holdfast.runs.lease import Lease
from holdfast.runs.outcomes import Cancelled, Failed, Outcome, RetryLater, Succeeded, WaitForChildren
from holdfast.runs.queue_entry import QueueEntry
from holdfast.runs.submission import Submission
from holdfast.support import errors
from holdfast.support.redaction import Redactor
from holdfast.values.builds import BuildRequest
from holdfast.values.policies import policy_from_json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Message = dict[str, Any]
T = TypeVar("T")


def to_wire(value: DataclassInstance) -> Message:
    """Return the fields of a value, with times as text. The caller converts nested values."""
    values = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: one.isoformat() if isinstance(one, datetime) else one for name, one in values.items()}


def from_wire(kind: Callable[..., T], message: Message, **converted: Any) -> T:
    """Build a value from its fields. Fields whose names end in `_at` are times; `converted` overrides fields."""
    times = {name: datetime.fromisoformat(one) for name, one in message.items() if one and name.endswith("_at")}
    return kind(**{**message, **times, **converted})


def claim_to_wire(claimed: ClaimedRun) -> Message:
    lease = to_wire(claimed.lease) | {"entry": claimed.lease.entry.row()}
    return to_wire(claimed) | {"lease": lease, "policy": claimed.policy.to_json()}


def claim_from_wire(message: Message) -> ClaimedRun:
    lease = from_wire(Lease, message["lease"], entry=QueueEntry.of(message["lease"]["entry"]))
    return from_wire(ClaimedRun, message, lease=lease, policy=policy_from_json(message["policy"]))


OUTCOMES = {kind.__name__: kind for kind in (Succeeded, Failed, Cancelled, RetryLater, WaitForChildren)}
"""The outcomes that a run's process can send."""


def outcome_to_wire(outcome: Outcome) -> Message:
    message = {"type": type(outcome).__name__} | to_wire(outcome)
    return message | ({"after": outcome.after.total_seconds()} if isinstance(outcome, RetryLater) else {})


def outcome_from_wire(message: Message, redactor: Redactor) -> Outcome:
    """Return the outcome, with the secrets that this process knows removed from its texts."""
    values: Message = {
        name: redactor.text(one) if name in ("error", "reason") and one else one for name, one in message.items()
    }
    if "after" in values:
        values["after"] = timedelta(seconds=values["after"])
    if "run_ids" in values:
        values["run_ids"] = tuple(values["run_ids"])
    return OUTCOMES[values.pop("type")](**values)


def submission_to_wire(submission: Submission) -> Message:
    return to_wire(submission) | {
        "policy": submission.policy.to_json(),
        "dependencies": dict(submission.dependencies),
        "build_requests": [[request.row(), must] for request, must in submission.build_requests.items()],
        "depends_on": [one if isinstance(one, str) else one.row() for one in submission.depends_on],
        "build": None if submission.build is None else submission.build.row(),
        "family": [submission_to_wire(member) for member in submission.family],
    }


def submission_from_wire(message: Message) -> Submission:
    return from_wire(
        Submission,
        message,
        policy=policy_from_json(message["policy"]),
        build_requests={BuildRequest.of(request): must for request, must in message["build_requests"]},
        depends_on=tuple(one if isinstance(one, str) else BuildRequest.of(one) for one in message["depends_on"]),
        build=None if message["build"] is None else BuildRequest.of(message["build"]),
        family=tuple(submission_from_wire(member) for member in message["family"]),
    )


def error_to_wire(error: Exception) -> Message:
    return {"error": type(error).__name__, "text": str(error)}


def error_from_wire(message: Message) -> Exception:
    kind = getattr(errors, message["error"], None)
    if isinstance(kind, type) and issubclass(kind, errors.HoldfastError) and kind is not errors.RunFailed:
        return kind(message["text"])
    return RuntimeError(f"{message['error']}: {message['text']}")
