"""Policies: options that decide how a run is limited, retried and recovered. They are stored with the run."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from holdfast.support import json_text
from holdfast.support.errors import InvalidPolicy, Unreadable
from holdfast.values.rates import parse_rate, rate_in_words
from holdfast.values.retries import Retry

Unique: TypeAlias = Literal["queued", "active"]


OnCrash = Literal["requeue", "retry", "fail"]


OnTimeout = Literal["end", "retry"]


OnShutdown = Literal["release", "fail"]


KeyOrder = Literal["due", "strict"]


MAX_KEY_LIMIT = 1000


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How a run is limited, retried and recovered.

    max_attempts   the number of attempts after which the run fails
    timeout        how long one attempt may take, in wall-clock time from its start
    on_timeout     'end' the run as timed_out, or 'retry' it as a failed attempt
    on_crash       if its worker is lost: 'requeue' at once, 'retry' as a failed attempt, or 'fail' the run
    on_shutdown    if its worker shuts down during an attempt: 'release' the run for another worker, or 'fail' it
    max_takeovers  how many workers may be lost while they execute the run before it fails
    key_order      'due': while a run waits for a retry, others with its key may run; 'strict': it keeps the key
    key_limit      how many runs may hold the key at once
    keep_forever   retention never deletes the run
    rate           how many runs may start in any period of a given length: 10/min, 1/s, 100/30s
    rate_name      the name under which starts are counted: given, or computed by `rate_key`; default: the job's name
    only_from_code only the application's own code may start runs, by `job.submit`; submitting by API or command line
                   and running again are refused
    start_at       the address of the application's page where a person can start a run instead
    """

    max_attempts: int = 1
    timeout: timedelta | None = timedelta(seconds=120)
    on_timeout: OnTimeout = "end"
    on_crash: OnCrash = "requeue"
    on_shutdown: OnShutdown = "release"
    max_takeovers: int = 5
    key_order: KeyOrder = "due"
    key_limit: int = 1
    keep_forever: bool = False
    rate: str | None = None
    rate_name: str | None = None
    only_from_code: bool = False
    start_at: str | None = None
    retry: Retry = Retry()

    def __post_init__(self) -> None:
        for name in ("max_attempts", "max_takeovers", "key_limit"):
            if isinstance(getattr(self, name), bool) or not isinstance(getattr(self, name), int):
                raise InvalidPolicy(f"{name} must be a whole number")
        if self.max_attempts < 1:
            raise InvalidPolicy("max_attempts must be at least 1")
        if not 1 <= self.key_limit <= MAX_KEY_LIMIT:
            raise InvalidPolicy(f"key_limit must be between 1 and {MAX_KEY_LIMIT}")
        if self.timeout is not None and self.timeout <= timedelta(0):
            raise InvalidPolicy("timeout must be positive, or None for no limit")
        if self.max_takeovers < 0:
            raise InvalidPolicy("max_takeovers can't be negative")
        if self.rate is not None:
            parse_rate(self.rate)
        if not isinstance(self.only_from_code, bool):
            raise InvalidPolicy("only_from_code must be True or False")
        if self.start_at is not None and not self.only_from_code:
            raise InvalidPolicy("start_at needs only_from_code=True")
        if self.start_at is not None and not _is_address(self.start_at):
            raise InvalidPolicy("start_at must be the address of a page: a path like /documents, or an http(s) URL")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise InvalidPolicy(f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}")

    def override(self, **changes: Any) -> Policy:
        """Return the policy with these fields changed, after checking them."""
        return replace(self, **changes) if changes else self

    def deadline(self, started_at: datetime) -> datetime | None:
        """Return when an attempt that started at this time times out."""
        return None if self.timeout is None else started_at + self.timeout

    @property
    def timed_out(self) -> str:
        """The beginning of the error of a run that timed out: 'Timed out after 2 s'."""
        return f"Timed out after {rate_in_words(self.timeout)}" if self.timeout is not None else "Timed out"

    def to_json(self) -> str:
        """Return the policy as it is stored with a run."""
        return _to_json(self)


OUTSIDE = ("only_from_code", "start_at")
"""Fields that are set for a job as a whole, never for one submission or stage."""


_ADDRESS = re.compile(r"(/(?!/)|https?://[^/\s])[!-~]{0,299}")


_CHOICES = {
    "on_timeout": ("end", "retry"),
    "on_crash": ("requeue", "retry", "fail"),
    "on_shutdown": ("release", "fail"),
    "key_order": ("due", "strict"),
}


def _is_address(text: object) -> bool:
    return isinstance(text, str) and _ADDRESS.fullmatch(text) is not None


UNREADABLE_POLICY = Policy(on_crash="fail", on_shutdown="fail")
"""Used if a stored policy can't be decoded: the run has one attempt, and no other worker starts it again."""


@lru_cache(maxsize=1024)
def _to_json(policy: Policy) -> str:
    """Return the policy as JSON with every field, so that a stored run keeps its policy when a default changes."""
    values = asdict(policy)
    values["timeout"] = None if policy.timeout is None else policy.timeout.total_seconds()
    # The delays are stored. The error classes are code and stay with the job.
    values["retry"] = {
        "step_attempts": policy.retry.step_attempts,
        "delay": policy.retry.delay.total_seconds(),
        "factor": policy.retry.factor,
        "max_delay": policy.retry.max_delay.total_seconds(),
        "jitter": policy.retry.jitter,
    }
    return json_text.compact(values)


def policy_from_json(text: str) -> Policy:
    """Return a stored policy, or UNREADABLE_POLICY if it can't be decoded."""
    try:
        return load_policy(text)
    except Unreadable:
        return UNREADABLE_POLICY


@lru_cache(maxsize=1024)
def load_policy(text: str) -> Policy:
    """Return a stored policy, or raise Unreadable; fields of another version are ignored."""
    try:
        values = json_text.mapping(text)
        given = {name: value for name, value in values.items() if name in Policy.__dataclass_fields__}
        retry = {name: value for name, value in values["retry"].items() if name in Retry.__dataclass_fields__}
        retry |= {name: timedelta(seconds=retry[name]) for name in ("delay", "max_delay") if name in retry}
        timeout = values.get("timeout")
        return Policy(
            **{**given, "retry": Retry(**retry), "timeout": None if timeout is None else timedelta(seconds=timeout)}
        )
    except Unreadable:
        raise
    except (InvalidPolicy, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise Unreadable(f"not a policy: {error!r}") from None
