"""Messages: what the worker and a run's process send each other, as plain JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.runs.claim import Claim
from holdfast.runs.lease import Lease
from holdfast.runs.outcomes import (
    Cancelled,
    Failed,
    Outcome,
    Release,
    RetryLater,
    Skipped,
    Succeeded,
    TimedOut,
    WaitForChildren,
)
from holdfast.runs.queue_entry import QueueEntry
from holdfast.runs.submission import Submission
from holdfast.support import errors
from holdfast.support.redaction import Redactor
from holdfast.values.builds import Wish
from holdfast.values.policies import policy_from_json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Message = dict[str, Any]
T = TypeVar("T")


def to_wire(value: DataclassInstance) -> Message:
    """The fields of a value, with its instants as text; nested values are for the caller to convert."""
    told = {one.name: getattr(value, one.name) for one in fields(value)}
    return {name: one.isoformat() if isinstance(one, datetime) else one for name, one in told.items()}


def from_wire(kind: Callable[..., T], told: Message, **converted: Any) -> T:
    """The value of these fields: a field whose name ends in `_at` is an instant, the `converted` ones are given."""
    instants = {name: datetime.fromisoformat(one) for name, one in told.items() if one and name.endswith("_at")}
    return kind(**{**told, **instants, **converted})


def claim_to_wire(claim: Claim) -> Message:
    lease = to_wire(claim.lease) | {"ticket": claim.lease.ticket.row()}
    return to_wire(claim) | {"lease": lease, "policy": claim.policy.to_json()}


def claim_from_wire(told: Message) -> Claim:
    lease = from_wire(Lease, told["lease"], ticket=QueueEntry(**told["lease"]["ticket"]))
    return from_wire(Claim, told, lease=lease, policy=policy_from_json(told["policy"]))


def outcome_to_wire(outcome: Outcome) -> Message:
    match outcome:
        case Succeeded(result):
            return {"is": "succeeded", "result": result}
        case Failed(failure_type, error):
            return {"is": "failed", "failure_type": failure_type, "error": error}
        case Cancelled(reason):
            return {"is": "cancelled", "reason": reason}
        case RetryLater(error, after, counts=counts):
            return {"is": "later", "error": error, "after": after.total_seconds(), "counts": counts}
        case WaitForChildren(run_ids):
            return {"is": "waits", "run_ids": list(run_ids)}
        case TimedOut() | Release() | Skipped():
            raise AssertionError("a run's own process does not decide that")


def outcome_from_wire(told: Message, claim: Claim, redactor: Redactor) -> Outcome:
    """The outcome, with the secrets taken out that this process knows of."""
    match told["is"]:
        case "succeeded":
            return Succeeded(told["result"])
        case "failed":
            return Failed(told["failure_type"], redactor.text(told["error"] or ""))
        case "cancelled":
            return Cancelled(redactor.text(told["reason"]))
        case "later":
            error, after = redactor.text(told["error"]), timedelta(seconds=told["after"])
            return RetryLater(error, after, key_order=claim.policy.key_order, counts=told["counts"])
        case "waits":
            return WaitForChildren(tuple(told["run_ids"]), key_order=claim.policy.key_order)
    raise ValueError(f"unknown outcome {told['is']!r}")


def submission_to_wire(submission: Submission) -> Message:
    return to_wire(submission) | {
        "policy": submission.policy.to_json(),
        "after": dict(submission.after),
        "wishes": [[_wish_to_wire(wish), must] for wish, must in submission.wishes.items()],
        "needed": [one if isinstance(one, str) else _wish_to_wire(one) for one in submission.needed],
        "build": None if submission.build is None else _wish_to_wire(submission.build),
        "family": [submission_to_wire(member) for member in submission.family],
    }


def submission_from_wire(told: Message) -> Submission:
    return from_wire(
        Submission,
        told,
        policy=policy_from_json(told["policy"]),
        wishes={Wish.of(wish): must for wish, must in told["wishes"]},
        needed=tuple(one if isinstance(one, str) else Wish.of(one) for one in told["needed"]),
        build=None if told["build"] is None else Wish.of(told["build"]),
        family=tuple(submission_from_wire(member) for member in told["family"]),
    )


def _wish_to_wire(wish: Wish) -> Message:
    identity = {"job": wish.job, "scope": wish.scope, "fingerprint": wish.fingerprint}
    return identity | {"submission": wish.to_json()}


def error_to_wire(error: Exception) -> Message:
    return {"error": type(error).__name__, "text": str(error)}


def error_from_wire(told: Message) -> Exception:
    kind = getattr(errors, told["error"], None)
    if isinstance(kind, type) and issubclass(kind, errors.HoldfastError) and kind is not errors.RunFailed:
        return kind(told["text"])
    return RuntimeError(f"{told['error']}: {told['text']}")
