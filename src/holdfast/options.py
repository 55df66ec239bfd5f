"""Options: what a job sets for its runs and one submission may set anew, checked as a user writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from string import Formatter
from typing import Any

from holdfast import codec
from holdfast.errors import InvalidArguments, InvalidPolicy
from holdfast.policies import Policy
from holdfast.retries import Retry
from holdfast.uniques import Unique
from holdfast.wishes import Wish

KeySpec = str | Callable[..., str | None]
MAX_KEY, MAX_NAME = 400, 200


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a job sets for its runs and a single submission may set anew."""

    queue: str = "default"
    priority: int = 0
    key: KeySpec | None = None
    policy: Policy = field(default_factory=Policy)
    delay: timedelta | None = None
    due_at: datetime | None = None
    after: Mapping[str | Wish, bool] = field(default_factory=dict)
    idempotency_key: str | None = None
    rate_key: KeySpec | None = None
    unique: Unique | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    connection: Any = None

    def __post_init__(self) -> None:
        for name, value in (("queue", self.queue), ("idempotency_key", self.idempotency_key)):
            if value is not None and not _is_name(value):
                raise InvalidPolicy(f"{name} is text of 1 to {MAX_NAME} characters, none NUL or half a character")
        if not isinstance(self.priority, int) or not -1_000_000 <= self.priority <= 1_000_000:
            raise InvalidPolicy("priority is a whole number between -1,000,000 and 1,000,000; higher goes first")
        if not isinstance(self.tags, Mapping) or not all(
            isinstance(part, str) for tag in self.tags.items() for part in tag
        ):
            raise InvalidPolicy("tags map text to text")
        if self.delay is not None and self.delay < timedelta(0):
            raise InvalidPolicy("delay can't be negative")
        if self.delay is not None and self.due_at is not None:
            raise InvalidPolicy("give delay or due_at, not both")
        if self.queue == "*":
            raise InvalidPolicy("'*' stands for all queues together; give this one another name")
        if self.unique not in (None, "queued", "active"):
            raise InvalidPolicy(f"unique is 'queued' or 'active', not {self.unique!r}")
        if self.due_at is not None and (not isinstance(self.due_at, datetime) or self.due_at.tzinfo is None):
            raise InvalidPolicy("due_at is a datetime with a time zone")


def as_duration(value: timedelta | float | None) -> timedelta | None:
    """A duration from a timedelta or a number of seconds."""
    if value is None or isinstance(value, timedelta):
        return value
    try:
        return timedelta(seconds=value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidPolicy(f"{value!r} is no duration: give a timedelta or a number of seconds") from None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and codec.storable(value)


def checked_policy(given: dict[str, Any]) -> dict[str, Any]:
    """Policy fields as a user writes them, with seconds made durations and unknown names refused."""
    unknown = given.keys() - set(Policy.__dataclass_fields__)
    if unknown:
        raise InvalidPolicy(
            f"unknown option {', '.join(sorted(unknown))}; a policy has {', '.join(Policy.__dataclass_fields__)}"
        )
    if "timeout" in given:
        given = given | {"timeout": as_duration(given["timeout"])}
    if not isinstance(given.get("retry", Retry()), Retry):
        raise InvalidPolicy("retry is a Retry(…)")
    return given


def needs(after: Iterable[Any] | Mapping[Any, bool] | None) -> dict[str | Wish, bool] | None:
    """What a run waits for, as a user names it: runs, ids, builds."""
    if after is None:
        return None
    if isinstance(after, str) or not isinstance(after, Iterable):
        raise InvalidPolicy("after is a list of runs (or their ids), or a mapping of runs to whether they must succeed")
    pairs: Sequence[tuple[Any, bool]] = (
        list(after.items()) if isinstance(after, Mapping) else [(run, True) for run in after]
    )
    for run, _ in pairs:
        if not isinstance(run, str | Wish) and not isinstance(getattr(run, "id", None), str):
            raise InvalidPolicy(f"after: {run!r} is neither a run, nor the id of one, nor a build")
    return {run if isinstance(run, str | Wish) else run.id: must for run, must in pairs}


def rated(options: Options, values: Mapping[str, Any], job: str) -> Policy:
    """The policy of a run, with what its rate is counted for."""
    if options.policy.rate is None or options.rate_key is None:
        return options.policy
    return options.policy.override(rate_name=key_from(options.rate_key, values, job, what="rate_key"))


def check_key(key: KeySpec | None, names: tuple[str, ...], job: str, *, what: str = "key") -> None:
    """Refuse a key (or what is spelled like one) that names no parameter."""
    if isinstance(key, str) and "{" in key:
        try:
            wanted = {field.partition(".")[0].partition("[")[0] for _, field, _, _ in Formatter().parse(key) if field}
        except ValueError as error:
            raise InvalidPolicy(f"job {job}: {what}={key!r} is no template: {error}") from None
        if unknown := wanted - set(names):
            raise InvalidPolicy(f"job {job}: {what}={key!r} names no parameter: {', '.join(sorted(unknown))}")
    elif isinstance(key, str) and key not in names:
        known = ", ".join(names) or "none"
        raise InvalidPolicy(
            f"job {job}: {what}={key!r} names no parameter (there are: {known}); a template has braces: '{{tenant}}'"
        )


def key_from(spec: KeySpec | None, values: Mapping[str, Any], job: str, *, what: str = "key") -> str | None:
    """`document_id` → `document_id:doc-1`; a template is filled in; a function is asked."""
    try:
        match spec:
            case None:
                return None
            case str() if "{" in spec:
                key: str | None = spec.format_map(values)
            case str():
                key = f"{spec}:{values[spec]}"
            case function:
                key = function(**values)
    except Exception as error:
        # A function of the user's own may raise anything.
        raise InvalidArguments(f"job {job}: its {what} can't be made from these arguments: {error!r}") from error
    if key is not None and not (0 < len(key) <= MAX_KEY and codec.storable(key)):
        raise InvalidArguments(
            f"job {job}: a {what} has 1 to {MAX_KEY} characters (this has {len(key)}), none NUL or half a character"
        )
    return key
