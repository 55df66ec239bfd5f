"""Runs as values: a snapshot of a run, its steps, results and explanations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from holdfast.support import json_text
from holdfast.values.policies import Policy


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An inconsistency that `verify` found in the database."""

    problem: str
    run_id: str
    detail: str


State: TypeAlias = Literal["succeeded", "failed", "cancelled", "timed_out"]


@dataclass(frozen=True, kw_only=True)
class Why:
    """The explanation of a run's state; `reasons` are sentences, the most immediate first."""

    run: Snapshot
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a run ended. `result` is JSON text, and None unless it succeeded; `job` is None if the run was deleted."""

    run_id: str
    job: str | None
    state: str
    failure_type: str | None
    error: str | None
    result: str | None

    @property
    def value(self) -> Any:
        """The result, decoded from JSON."""
        return None if self.result is None else json_text.load(self.result)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run as it was when read."""

    id: str
    job: str
    queue: str
    priority: int
    key: str | None
    args: Any
    tags: dict[str, str]
    idempotency_key: str | None
    again_of: str | None
    kind: str | None
    parent_id: str | None
    stage: str | None
    segment: str | None
    depends_on: tuple[str, ...]
    keep_forever: bool
    created_at: datetime
    state: str
    place: str | None
    claim: int
    attempt: int
    takeovers: int
    holder: str | None
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None
    deadline_at: datetime | None
    cancel_requested_at: datetime | None
    due_at: datetime | None
    reason: str | None
    failure_type: str | None
    error: str | None
    result: str | None
    policy: Policy
    unreadable: str | None = None
    """The stored values that can't be decoded, and why. Their fields have a marker or a default instead."""

    @property
    def ended(self) -> bool:
        return self.place == "outcomes"

    @property
    def arguments(self) -> Any:
        """The arguments as the user knows them, without a pipeline's plan or a stage's version."""
        args = self.args if isinstance(self.args, dict) else {}
        match self.kind:
            case "pipeline" if "arguments" in args:
                return args["arguments"]
            case "stage":
                return None
            case "segment" if "value" in args:
                return {"value": args["value"]}
        return self.args


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    name: str
    result: str
    claim: int
    attempts: int
    started_at: datetime
    finished_at: datetime
    number: int = 0
    """The position of the step in its claim, in the order of writing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """A finished step, without its result."""

    name: str
    claim: int
    attempts: int
    started_at: datetime
    finished_at: datetime
    number: int
    forgotten: bool


def last_line(error: str) -> str:
    """Return the last line of a traceback, at most 1,000 characters. The event or outcome keeps the whole traceback."""
    lines = error.strip().splitlines()
    return lines[-1][:1000] if lines else ""
