"""Shapes: what the API says and takes. Names here are promises; request shapes refuse what they do not know."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

import pydantic_core
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from holdfast.support import json_text
from holdfast.values.events import Event as Told
from holdfast.values.policies import Policy as Rules
from holdfast.values.runs import Snapshot

MOST, USUAL = 200, 50  # of a page
LONG = 10_000  # characters of a value that a list still shows

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out"]
Place = Literal["waits", "ready", "leases", "outcomes"]

_NO_NUL = r"^[^\x00]*$"
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=_NO_NUL)]
Text = Annotated[str, StringConstraints(max_length=1000, pattern=_NO_NUL)]
Cursor = Annotated[str, StringConstraints(max_length=1000, pattern=_NO_NUL)]
RunId = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=_NO_NUL)]
Limit = Annotated[int, Field(ge=1, le=MOST, description="At most so many.")]


def _instant(said: object) -> datetime:
    """A time with its zone, as ISO 8601 writes it; no count of seconds, of which no one knows since when."""
    try:
        if isinstance(said, str) and "-" in said:
            return datetime.fromisoformat(said).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError("write an instant with its zone, like 2026-11-16T06:00:00Z")


def _zoned(said: object) -> object:
    if isinstance(said, str) and len(said) <= 40 and not re.search(r"(Z|[+-]\d\d:?\d\d)$", said, re.IGNORECASE):
        raise ValueError("an instant needs its zone, like 2026-11-16T06:00:00Z")
    return said


Instant = Annotated[AwareDatetime, BeforeValidator(_instant), BeforeValidator(_zoned)]


class Shape(BaseModel):
    """What the API says: made from a value of the engine, name by name."""

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


class Ask(BaseModel):
    """What the API takes as JSON: an unknown name, or a value of another type, is refused: a slip changes nothing."""

    model_config = ConfigDict(extra="forbid", strict=True)


class AskQuery(BaseModel):
    """What the API takes in a query, where all is text."""

    model_config = ConfigDict(extra="forbid")


class Retry(Shape):
    """When a failed step is tried again: times in seconds."""

    steps: int
    delay: float
    factor: float
    max_delay: float
    jitter: float


class Policy(Shape):
    """What a run may do and what its misfortunes mean; times in seconds."""

    max_attempts: int
    timeout: float | None
    on_timeout: str
    on_crash: str
    on_shutdown: str
    max_takeovers: int
    key_order: str
    key_limit: int
    audit: bool
    rate: str | None
    rate_name: str | None
    only_from_code: bool = Field(description="Only the application's own code starts runs; to ask for one is refused.")
    start_at: str | None = Field(description="The address of the application's page that starts them instead.")
    retry: Retry

    @classmethod
    def of(cls, policy: Rules) -> Self:
        return cls.model_validate(json_text.load(policy.to_json()))


class Run(Shape):
    """A run as it stood when it was read."""

    id: str = Field(examples=["01m2z8k6w1v7q3c9x5b0n4d2ta"])
    job: str = Field(examples=["app.greet"])
    queue: str
    priority: int
    key: str | None
    args: Any
    tags: dict[str, str]
    idempotency_key: str | None
    again_of: str | None = Field(description="The run that this one repeats.")
    kind: str | None = Field(description="pipeline, stage, segment, build, slot …; null for a plain run.")
    parent_id: str | None
    stage: str | None
    segment: str | None
    needed: list[str]
    audit: bool
    created_at: datetime
    state: State
    place: Place | None
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
    result: Any
    policy: Policy
    unreadable: str | None = Field(description="Which stored values can't be decoded, and why; null for a sound run.")
    cut: list[Literal["args", "result", "error"]] = Field(
        description=f"Of a run in a list: values longer than {LONG:,} characters, which only the run itself shows."
    )

    @classmethod
    def of(cls, snapshot: Snapshot, *, whole: bool = True) -> Self:
        """All of it; in a list without the values that are too long for one."""
        fields = {name: getattr(snapshot, name) for name in Snapshot.__dataclass_fields__ if name in cls.model_fields}
        cut = [] if whole else [name for name, size in _sizes(snapshot).items() if size > LONG]
        result = None if snapshot.result is None or "result" in cut else json_text.shown(snapshot.result)
        fields |= {"result": result, "needed": list(snapshot.needed), "policy": Policy.of(snapshot.policy), "cut": cut}
        if "error" in cut:
            fields["error"] = f"{(snapshot.error or '')[-LONG:]}"
        return cls.model_validate(fields | ({"args": None} if "args" in cut else {}))


def _sizes(snapshot: Snapshot) -> dict[str, int]:
    return {
        "args": len(pydantic_core.to_json(snapshot.args)),
        "result": len(snapshot.result or ""),
        "error": len(snapshot.error or ""),
    }


class Event(Shape):
    """Something that happened, to a run or to none in particular."""

    run_id: str | None
    kind: str = Field(examples=["RUN_STARTED"])
    attempt: int | None
    happened_at: datetime | None
    data: dict[str, Any]
    cursor: str | None = Field(description="Go on after this event by ?after=, or Last-Event-ID.")

    @classmethod
    def of(cls, event: Told, cursor: str | None = None) -> Self:
        fields = {name: getattr(event, name) for name in ("run_id", "kind", "attempt", "happened_at", "data")}
        return cls.model_validate(fields | {"cursor": cursor})


class Why(Shape):
    """Where a run stands, and why; the first reason is the most immediate."""

    id: str
    state: State
    reasons: list[str] = Field(examples=[["queue mail is paused since 2026-11-16 06:00:00 UTC (the provider is down)"]])


class Done(Shape):
    """What a run's state is after it was steered."""

    id: str
    state: State
