"""Wire: what the worker and a run's process say to each other, as plain JSON."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from holdfast import errors, policies
from holdfast.depots.base import Artifact
from holdfast.leases import Claim, Lease
from holdfast.outcomes import Cancelled, Failed, HandBack, Outcome, Succeeded, TimedOut, TryLater
from holdfast.redaction import Redactor
from holdfast.steps import Step
from holdfast.tickets import Ticket

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
    }


def claim_from_wire(told: Message) -> Claim:
    return Claim(
        lease=Lease(
            ticket=Ticket(**told["ticket"]),
            holder=told["holder"],
            started_at=datetime.fromisoformat(told["started_at"]),
            expires_at=datetime.fromisoformat(told["expires_at"]),
            deadline_at=None if told["deadline_at"] is None else datetime.fromisoformat(told["deadline_at"]),
        ),
        args=told["args"],
        policy=policies.from_json(told["policy"]),
        tags=told["tags"],
        again_of=told["again_of"],
        created_at=datetime.fromisoformat(told["created_at"]),
        parent_id=told["parent_id"],
        stage=told["stage"],
        segment=told["segment"],
        needed=told["needed"],
    )


def outcome_to_wire(outcome: Outcome) -> Message:
    match outcome:
        case Succeeded(result):
            return {"is": "succeeded", "result": result}
        case Failed(failure_type, error):
            return {"is": "failed", "failure_type": failure_type, "error": error}
        case Cancelled(reason):
            return {"is": "cancelled", "reason": reason}
        case TryLater(error, after):
            return {"is": "later", "error": error, "after": after.total_seconds()}
        case TimedOut() | HandBack():
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
            return TryLater(error, after, key_order=claim.policy.key_order)
    raise ValueError(f"unknown outcome {told['is']!r}")


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
