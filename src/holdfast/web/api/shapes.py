"""Request and response models of the API. Their field names are stable; requests with unknown fields are refused."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

import pydantic_core
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from holdfast.support import json_text
from holdfast.values.events import Event as RecordedEvent
from holdfast.values.policies import Policy as Rules
from holdfast.values.runs import Snapshot

MOST, USUAL = 200, 50  # largest and default page size
LONG = 10_000  # characters; longer values are cut in lists

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out"]
Place = Literal["waits", "ready", "leases", "outcomes"]

_NO_NUL = r"^[^\x00]*$"
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=_NO_NUL)]
Text = Annotated[str, StringConstraints(max_length=1000, pattern=_NO_NUL)]
Cursor = Annotated[str, StringConstraints(max_length=1000, pattern=_NO_NUL)]
RunId = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=_NO_NUL)]
Limit = Annotated[int, Field(ge=1, le=MOST, description="Maximum number of items.")]


def _instant(value: object) -> datetime:
    """Parse an ISO 8601 time with its time zone. Numbers are refused, because their unit and epoch are unclear."""
    try:
        if isinstance(value, str) and "-" in value:
            return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError("write a time with its time zone, such as 2026-11-16T06:00:00Z")


def _zoned(value: object) -> object:
    if isinstance(value, str) and len(value) <= 40 and not re.search(r"(Z|[+-]\d\d:?\d\d)$", value, re.IGNORECASE):
        raise ValueError("a time needs its time zone, such as 2026-11-16T06:00:00Z")
    return value


Instant = Annotated[AwareDatetime, BeforeValidator(_instant), BeforeValidator(_zoned)]


class Shape(BaseModel):
    """The base of responses, which are filled from values field by field."""

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


class RequestBody(BaseModel):
    """The base of JSON request bodies. Unknown fields and values of a wrong type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QueryModel(BaseModel):
    """The base of query parameters, whose values are text."""

    model_config = ConfigDict(extra="forbid")


class Retry(Shape):
    """When a failed attempt or step is retried; times in seconds."""

    step_attempts: int
    delay: float
    factor: float
    max_delay: float
    jitter: float


class Policy(Shape):
    """The policy of a run; times in seconds."""

    max_attempts: int
    timeout: float | None
    on_timeout: str
    on_crash: str
    on_shutdown: str
    max_takeovers: int
    key_order: str
    key_limit: int
    keep_forever: bool
    rate: str | None
    rate_name: str | None
    only_from_code: bool = Field(description="True if only the application's own code may submit runs.")
    start_at: str | None = Field(description="The URL of the application's page that starts these runs.")
    retry: Retry

    @classmethod
    def of(cls, policy: Rules) -> Self:
        return cls.model_validate(json_text.load(policy.to_json()))


class Run(Shape):
    """A run, as it was when it was read."""

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
    depends_on: list[str]
    keep_forever: bool
    created_at: datetime
    state: State
    place: Place | None
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
    result: Any
    policy: Policy
    unreadable: str | None = Field(description="Which stored values can't be decoded, and why; usually null.")
    cut: list[Literal["args", "result", "error"]] = Field(
        description=f"Fields that a list cuts, because they have over {LONG:,} characters. Get the run to read them."
    )

    @classmethod
    def of(cls, snapshot: Snapshot, *, whole: bool = True) -> Self:
        """Return the run; unless `whole`, without values that are too long for a list."""
        fields = {name: getattr(snapshot, name) for name in Snapshot.__dataclass_fields__ if name in cls.model_fields}
        cut = [] if whole else [name for name, size in _sizes(snapshot).items() if size > LONG]
        result = None if snapshot.result is None or "result" in cut else json_text.shown(snapshot.result)
        fields |= {
            "result": result,
            "depends_on": list(snapshot.depends_on),
            "policy": Policy.of(snapshot.policy),
            "cut": cut,
        }
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
    """An event of a run, or of no particular run."""

    run_id: str | None
    kind: str = Field(examples=["RUN_STARTED"])
    claim: int | None
    happened_at: datetime | None
    data: dict[str, Any]
    cursor: str | None = Field(description="Continue after this event with `?after=` or `Last-Event-ID`.")

    @classmethod
    def of(cls, event: RecordedEvent, cursor: str | None = None) -> Self:
        fields = {name: getattr(event, name) for name in ("run_id", "kind", "claim", "happened_at", "data")}
        return cls.model_validate(fields | {"cursor": cursor})


class Why(Shape):
    """The state of a run and the reasons for it, the most important first."""

    id: str
    state: State
    reasons: list[str] = Field(
        examples=[["queue mail has been paused since 2026-11-16 06:00:00 UTC (the provider is down)"]]
    )


class Done(Shape):
    """The state of a run after an action."""

    id: str
    state: State
