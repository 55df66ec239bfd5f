"""Retries: how often a thing is tried, how long to wait between, and for which errors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from holdfast.support.errors import InvalidPolicy

Errors: TypeAlias = type[BaseException] | Iterable[type[BaseException]]


@dataclass(frozen=True, init=False)
class Retry:
    """`steps` is the number of tries of one step in all; the delays (seconds or timedeltas) serve steps and runs alike.

    The wait before try n is `delay * factor ** (n - 2)`, at most `max_delay`, spread by `jitter`
    (0.2 means: up to a fifth shorter or longer). `on` and `never_on` are an error class or several.
    """

    steps: int
    delay: timedelta
    factor: float
    max_delay: timedelta
    jitter: float
    on: tuple[type[BaseException], ...]
    never_on: tuple[type[BaseException], ...]

    def __init__(
        self,
        *,
        steps: int = 2,
        delay: timedelta | float = 1.0,
        factor: float = 2.0,
        max_delay: timedelta | float = 600.0,
        jitter: float = 0.2,
        on: Errors = (Exception,),
        never_on: Errors = (),
    ) -> None:
        if not isinstance(steps, int) or steps < 1:
            raise InvalidPolicy(f"Retry(steps={steps}): a step is tried at least once")
        if not isinstance(factor, int | float) or not isinstance(jitter, int | float):
            raise InvalidPolicy("Retry: factor and jitter are numbers")
        if not 1 <= factor < math.inf or not 0 <= jitter <= 1:
            raise InvalidPolicy("Retry: factor is at least 1, jitter lies between 0 and 1")
        values = {
            "steps": steps,
            "delay": _duration(delay),
            "factor": factor,
            "max_delay": _duration(max_delay),
            "jitter": jitter,
            "on": _errors(on),
            "never_on": _errors(never_on),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def applies_to(self, error: BaseException) -> bool:
        """Whether this error is one that is tried again."""
        return isinstance(error, self.on) and not isinstance(error, (*self.never_on, GiveUp))

    def wait_before(self, number: int, *, fraction: float) -> timedelta:
        """How long to wait before try `number` (2 is the first retry)."""
        try:
            wait = min(self.delay * self.factor ** (number - 2), self.max_delay)
        except OverflowError:
            wait = self.max_delay
        return wait * (1 + self.jitter * (2 * fraction - 1))


class TryAgain(Exception):
    """Raise it from a job to be run again after a while; it counts as a failed attempt, unless `counts` is False.

    `after` overrides the job's own delay: an HTTP 429 passes its Retry-After on. One that does not count is for a run
    that has not tried anything: what it needs is known to be away. It may be put off as often as it takes.
    """

    def __init__(self, reason: str, *, after: timedelta | float | None = None, counts: bool = True) -> None:
        super().__init__(reason)
        self.after = None if after is None else _duration(after)
        self.counts = counts


FAILURE_TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,59}")
OURS = {
    "ARGUMENTS_CHANGED",
    "BUILD_FAILED",
    "CANCELLED",
    "JOB_NOT_LOADED",
    "NEED_FAILED",
    "NOT_SEGMENTS",
    "PROCESS_TERMINATED",
    "RESULT_NOT_STORABLE",
    "RUN_UNREADABLE",
    "SKIPPED",
    "TAKEOVER_LIMIT",
    "TIMED_OUT",
}
"""What only the engine may say of a run: some of it decides how others go on."""


class GiveUp(Exception):
    """Raise it from a job, or a step of it, where trying again is of no use: the run fails, and says why in a word.

    `failure_type` is the application's own, in capitals: `GiveUp("it needs a password", failure_type="ENCRYPTED")`.
    """

    def __init__(self, reason: str, *, failure_type: str = "ERROR") -> None:
        if not isinstance(failure_type, str) or not FAILURE_TYPE.fullmatch(failure_type) or failure_type in OURS:
            raise InvalidPolicy(
                f"GiveUp(failure_type={failure_type!r}): a failure type is a name in capitals, none of the engine's own"
            )
        super().__init__(reason)
        self.failure_type = failure_type


def _duration(value: timedelta | float) -> timedelta:
    """A duration from a timedelta or a number of seconds."""
    try:
        duration = value if isinstance(value, timedelta) else timedelta(seconds=value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidPolicy(f"{value!r} is not a duration: give a timedelta or a number of seconds") from None
    if duration < timedelta(0):
        raise InvalidPolicy(f"a delay can't be negative: {value!r}")
    return duration


def _errors(given: Errors) -> tuple[type[BaseException], ...]:
    classes = (given,) if isinstance(given, type) else tuple(given) if isinstance(given, Iterable) else (given,)
    for one in classes:
        if not isinstance(one, type) or not issubclass(one, BaseException):
            raise InvalidPolicy(f"Retry: {one!r} is not an error class")
    return classes
