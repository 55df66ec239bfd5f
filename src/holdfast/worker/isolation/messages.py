"""Messages: what the worker and a run's process send each other, as plain JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.runs.claim import Claim
from holdfast.runs.lease import Lease
from holdfast.runs.outcomes import Cancelled, Failed, Outcome, RetryLater, Succeeded, WaitForChildren
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


OUTCOMES = {kind.__name__: kind for kind in (Succeeded, Failed, Cancelled, RetryLater, WaitForChildren)}
"""What a run's own process decides."""


def outcome_to_wire(outcome: Outcome) -> Message:
    told = {"is": type(outcome).__name__} | to_wire(outcome)
    return told | ({"after": outcome.after.total_seconds()} if isinstance(outcome, RetryLater) else {})


def outcome_from_wire(told: Message, redactor: Redactor) -> Outcome:
    """The outcome, with the secrets taken out that this process knows of."""
    given: Message = {
        name: redactor.text(one) if name in ("error", "reason") and one else one for name, one in told.items()
    }
    if "after" in given:
        given["after"] = timedelta(seconds=given["after"])
    if "run_ids" in given:
        given["run_ids"] = tuple(given["run_ids"])
    return OUTCOMES[given.pop("is")](**given)


def submission_to_wire(submission: Submission) -> Message:
    return to_wire(submission) | {
        "policy": submission.policy.to_json(),
        "after": dict(submission.after),
        "wishes": [[wish.row(), must] for wish, must in submission.wishes.items()],
        "needed": [one if isinstance(one, str) else one.row() for one in submission.needed],
        "build": None if submission.build is None else submission.build.row(),
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


def error_to_wire(error: Exception) -> Message:
    return {"error": type(error).__name__, "text": str(error)}


def error_from_wire(told: Message) -> Exception:
    kind = getattr(errors, told["error"], None)
    if isinstance(kind, type) and issubclass(kind, errors.HoldfastError) and kind is not errors.RunFailed:
        return kind(told["text"])
    return RuntimeError(f"{told['error']}: {told['text']}")
