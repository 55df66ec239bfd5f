"""Wire: what the worker and a run's process say to each other, as plain JSON."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Any

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
from holdfast.values.artifacts import Artifact
from holdfast.values.builds import Wish
from holdfast.values.policies import policy_from_json
from holdfast.values.runs import Step

Message = dict[str, Any]


def claim_to_wire(claim: Claim) -> Message:
    lease = claim.lease
    return {
        "ticket": lease.ticket.row(),
        "holder": lease.holder,
        "started_at": lease.started_at.isoformat(),
        "expires_at": lease.expires_at.isoformat(),
        "deadline_at": None if lease.deadline_at is None else lease.deadline_at.isoformat(),
        "args": claim.args,
        "policy": claim.policy.to_json(),
        "tags": claim.tags,
        "again_of": claim.again_of,
        "created_at": claim.created_at.isoformat(),
        "parent_id": claim.parent_id,
        "stage": claim.stage,
        "segment": claim.segment,
        "needed": claim.needed,
        "trace": claim.trace,
        "unreadable": claim.unreadable,
    }


def claim_from_wire(told: Message) -> Claim:
    return Claim(
        lease=Lease(
            ticket=QueueEntry(**told["ticket"]),
            holder=told["holder"],
            started_at=datetime.fromisoformat(told["started_at"]),
            expires_at=datetime.fromisoformat(told["expires_at"]),
            deadline_at=None if told["deadline_at"] is None else datetime.fromisoformat(told["deadline_at"]),
        ),
        args=told["args"],
        policy=policy_from_json(told["policy"]),
        tags=told["tags"],
        again_of=told["again_of"],
        created_at=datetime.fromisoformat(told["created_at"]),
        parent_id=told["parent_id"],
        stage=told["stage"],
        segment=told["segment"],
        needed=told["needed"],
        trace=told["trace"],
        unreadable=told["unreadable"],
    )


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
    told = {one.name: getattr(submission, one.name) for one in fields(Submission)}
    return told | {
        "policy": submission.policy.to_json(),
        "due_at": None if submission.due_at is None else submission.due_at.isoformat(),
        "after": dict(submission.after),
        "wishes": [[_wish_to_wire(wish), must] for wish, must in submission.wishes.items()],
        "needed": [one if isinstance(one, str) else _wish_to_wire(one) for one in submission.needed],
        "build": None if submission.build is None else _wish_to_wire(submission.build),
        "family": [submission_to_wire(member) for member in submission.family],
    }


def submission_from_wire(told: Message) -> Submission:
    given = told | {
        "policy": policy_from_json(told["policy"]),
        "due_at": None if told["due_at"] is None else datetime.fromisoformat(told["due_at"]),
        "wishes": {Wish.of(wish): must for wish, must in told["wishes"]},
        "needed": tuple(one if isinstance(one, str) else Wish.of(one) for one in told["needed"]),
        "build": None if told["build"] is None else Wish.of(told["build"]),
        "family": tuple(submission_from_wire(member) for member in told["family"]),
    }
    return Submission(**given)


def _wish_to_wire(wish: Wish) -> Message:
    identity = {"job": wish.job, "scope": wish.scope, "fingerprint": wish.fingerprint}
    return identity | {"submission": wish.to_json()}


def step_to_wire(step: Step) -> Message:
    values = {name: getattr(step, name) for name in Step.__slots__}
    return values | {"started_at": step.started_at.isoformat(), "finished_at": step.finished_at.isoformat()}


def step_from_wire(told: Message) -> Step:
    times = {name: datetime.fromisoformat(told[name]) for name in ("started_at", "finished_at")}
    return Step(**{**told, **times})


def artifact_to_wire(artifact: Artifact) -> Message:
    return asdict(artifact) | {"made_at": artifact.made_at.isoformat()}


def artifact_from_wire(told: Message) -> Artifact:
    return Artifact(**{**told, "made_at": datetime.fromisoformat(told["made_at"])})


def error_to_wire(error: Exception) -> Message:
    return {"error": type(error).__name__, "text": str(error)}


def error_from_wire(told: Message) -> Exception:
    kind = getattr(errors, told["error"], None)
    if isinstance(kind, type) and issubclass(kind, errors.HoldfastError) and kind is not errors.RunFailed:
        return kind(told["text"])
    return RuntimeError(f"{told['error']}: {told['text']}")
