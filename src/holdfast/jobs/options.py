"""Options: what a job sets for its runs and one submission may set anew, checked as a user writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from holdfast.jobs.arguments import KeySpec
from holdfast.support import json_text
from holdfast.support.errors import InvalidPolicy
from holdfast.support.validation import MAX_KEY, as_duration, check_name, did_you_mean, is_number
from holdfast.values.builds import Wish
from holdfast.values.policies import Policy, Unique
from holdfast.values.retries import Retry


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
        check_name(self.queue, what="queue")
        if self.idempotency_key is not None:
            check_name(self.idempotency_key, what="idempotency_key")
        if not is_number(self.priority, least=-1_000_000, most=1_000_000):
            raise InvalidPolicy("priority is a whole number between -1,000,000 and 1,000,000; higher goes first")
        if not isinstance(self.tags, Mapping) or not all(
            isinstance(part, str) and json_text.storable(part) for tag in self.tags.items() for part in tag
        ):
            raise InvalidPolicy("tags map text to text, without NUL or half a character")
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
        self._check_pairs()

    def _check_pairs(self) -> None:
        """What means nothing without something else."""
        if self.key is None and self.policy.key_limit != 1:
            raise InvalidPolicy("key_limit counts the runs that hold a key: it needs a key")
        if self.key is None and self.policy.key_order != "due":
            raise InvalidPolicy("key_order is the order of a key's runs: it needs a key")
        if self.policy.rate is None and self.rate_key is not None:
            raise InvalidPolicy("rate_key says what a rate is counted for: it needs a rate")
        if self.policy.rate is None and self.policy.rate_name is not None:
            raise InvalidPolicy("rate_name says what a rate is counted for: it needs a rate")
        if self.rate_key is not None and self.policy.rate_name is not None:
            raise InvalidPolicy("give rate_key or rate_name, not both: each says what the rate is counted for")


def checked_policy(
    given: dict[str, Any], *, of: str = "a job", also: Iterable[str] = (), unfit: Iterable[str] = ()
) -> dict[str, Any]:
    """Policy fields as a user writes them, with seconds made durations and other names refused.

    `also` are the options that may be given there beside them, `unfit` the fields that may not.
    """
    fits = {*also, *(set(Policy.__dataclass_fields__) - set(unfit))}
    for name in sorted(given.keys() - fits):
        if name in Policy.__dataclass_fields__ or name in Options.__dataclass_fields__:
            raise InvalidPolicy(f"{name} does not fit {of}")
        likely = did_you_mean(name, fits) or f"; can be given: {', '.join(sorted(fits))}"
        raise InvalidPolicy(f"unknown option {name}{likely}")
    if "timeout" in given:
        given = given | {"timeout": as_duration(given["timeout"])}
    if not isinstance(given.get("retry", Retry()), Retry):
        raise InvalidPolicy("retry is a Retry(…)")
    if given.get("rate_name") is not None:
        check_name(given["rate_name"], what="rate_name", max_length=MAX_KEY)
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
