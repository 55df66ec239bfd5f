"""Runs as values: a snapshot of a run, its steps, results and explanations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from holdfast.support import json_text
from holdfast.values.policies import Policy


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that must never be."""

    problem: str
    run_id: str
    detail: str


State: TypeAlias = Literal["succeeded", "failed", "cancelled", "timed_out"]


@dataclass(frozen=True, kw_only=True)
class Why:
    """Where a run stands; `reasons` are sentences, the first one the most immediate."""

    run: Snapshot
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a run ended; `result` is JSON text, and None unless it succeeded. `job` is None if its run is not there."""

    run_id: str
    job: str | None
    state: str
    failure_type: str | None
    error: str | None
    result: str | None

    @property
    def value(self) -> Any:
        """The result as plain JSON gives it back."""
        return None if self.result is None else json_text.load(self.result)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run as it stood when it was read."""

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
    needed: tuple[str, ...]
    audit: bool
    created_at: datetime
    state: str
    place: str | None
    attempt: int
    tries: int
    takeovers: int
    holder: str | None
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None
    deadline_at: datetime | None
    cancel_requested_at: datetime | None
    due_at: datetime | None
    because: str | None
    failure_type: str | None
    error: str | None
    result: str | None
    policy: Policy
    unreadable: str | None = None
    """Which stored values can't be decoded, and why; each of them holds a marker or a default."""

    @property
    def ended(self) -> bool:
        return self.place == "outcomes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    name: str
    result: str
    attempt: int
    tries: int
    started_at: datetime
    finished_at: datetime
    number: int = 0
    """The how-manieth of its attempt, in the order of writing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """A finished step, without its result."""

    name: str
    attempt: int
    tries: int
    started_at: datetime
    finished_at: datetime
    number: int
    forgotten: bool


def last_line(error: str) -> str:
    """What a traceback comes to: its last line. The event has all of it."""
    lines = error.strip().splitlines()
    return lines[-1][:1000] if lines else ""
