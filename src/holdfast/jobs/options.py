"""Options: settings of a job for its runs, which a submission may override, and their validation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from holdfast.jobs.arguments import KeySpec
from holdfast.support import json_text
from holdfast.support.errors import InvalidPolicy
from holdfast.support.validation import MAX_KEY, as_duration, check_name, did_you_mean, is_number
from holdfast.values.builds import BuildRequest
from holdfast.values.policies import Policy, Unique
from holdfast.values.retries import Retry


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of a job for its runs, which a submission may override."""

    queue: str = "default"
    priority: int = 0
    key: KeySpec | None = None
    policy: Policy = field(default_factory=Policy)
    delay: timedelta | None = None
    due_at: datetime | None = None
    depends_on: Mapping[str | BuildRequest, bool] = field(default_factory=dict)
    idempotency_key: str | None = None
    rate_key: KeySpec | None = None
    unique: Unique | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    connection: Any = None

    def __post_init__(self) -> None:
        check_name(self.queue, what="queue")
        if self.idempotency_key is not None:
            check_name(self.idempotency_key, what="idempotency_key")
        if not is_number(self.priority, least=-1_000_000, most=1_000_000):
            raise InvalidPolicy("priority must be a whole number from -1,000,000 to 1,000,000; higher starts first")
        if not isinstance(self.tags, Mapping) or not all(
            isinstance(part, str) and json_text.storable(part) for tag in self.tags.items() for part in tag
        ):
            raise InvalidPolicy("tags must map text to text, without NUL or lone surrogates")
        if self.delay is not None and self.delay < timedelta(0):
            raise InvalidPolicy("delay can't be negative")
        if self.delay is not None and self.due_at is not None:
            raise InvalidPolicy("give delay or due_at, not both")
        if self.queue == "*":
            raise InvalidPolicy("'*' means all queues together; choose another queue name")
        if self.unique not in (None, "queued", "active"):
            raise InvalidPolicy(f"unique must be 'queued' or 'active', not {self.unique!r}")
        if self.due_at is not None and (not isinstance(self.due_at, datetime) or self.due_at.tzinfo is None):
            raise InvalidPolicy("due_at must be a datetime with a time zone")
        self._check_pairs()

    def _check_pairs(self) -> None:
        """Raise InvalidPolicy if an option lacks another that it needs, or is given with one that it excludes."""
        if self.key is None and self.policy.key_limit != 1:
            raise InvalidPolicy("key_limit has no effect without a key; give a key as well")
        if self.key is None and self.policy.key_order != "due":
            raise InvalidPolicy("key_order has no effect without a key; give a key as well")
        if self.policy.rate is None and self.rate_key is not None:
            raise InvalidPolicy("rate_key has no effect without a rate; give a rate as well")
        if self.policy.rate is None and self.policy.rate_name is not None:
            raise InvalidPolicy("rate_name has no effect without a rate; give a rate as well")
        if self.rate_key is not None and self.policy.rate_name is not None:
            raise InvalidPolicy("give rate_key or rate_name, not both")


def checked_policy(
    given: dict[str, Any], *, of: str = "a job", also: Iterable[str] = (), unfit: Iterable[str] = ()
) -> dict[str, Any]:
    """Validate policy fields as a user wrote them, and convert seconds to durations.

    `also` lists other options that are allowed, `unfit` the policy fields that are not.
    """
    allowed = {*also, *(set(Policy.__dataclass_fields__) - set(unfit))}
    for name in sorted(given.keys() - allowed):
        if name in Policy.__dataclass_fields__ or name in Options.__dataclass_fields__:
            raise InvalidPolicy(f"{name} is not an option of {of}")
        hint = did_you_mean(name, allowed) or f"; known: {', '.join(sorted(allowed))}"
        raise InvalidPolicy(f"unknown option {name}{hint}")
    if "timeout" in given:
        given = given | {"timeout": as_duration(given["timeout"])}
    if not isinstance(given.get("retry", Retry()), Retry):
        raise InvalidPolicy("retry must be a Retry(…)")
    if given.get("rate_name") is not None:
        check_name(given["rate_name"], what="rate_name", max_length=MAX_KEY)
    return given


def checked_dependencies(
    depends_on: Iterable[Any] | Mapping[Any, bool] | None,
) -> dict[str | BuildRequest, bool] | None:
    """Validate the dependencies that a user gave as runs, run ids or builds, and return them by id or request."""
    if depends_on is None:
        return None
    if isinstance(depends_on, str) or not isinstance(depends_on, Iterable):
        raise InvalidPolicy(
            "depends_on must be a list of runs (or their ids), or a mapping of runs to whether they must succeed"
        )
    pairs: Sequence[tuple[Any, bool]] = (
        list(depends_on.items()) if isinstance(depends_on, Mapping) else [(run, True) for run in depends_on]
    )
    for run, _ in pairs:
        if not isinstance(run, str | BuildRequest) and not isinstance(getattr(run, "id", None), str):
            raise InvalidPolicy(f"depends_on: {run!r} is not a run, a run id or a build")
    return {run if isinstance(run, str | BuildRequest) else run.id: must for run, must in pairs}
