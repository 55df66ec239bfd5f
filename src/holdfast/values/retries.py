"""Retries: how often a step is tried, how long to wait between attempts, and after which errors."""

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
    """When to try a step or a run again, and after which errors.

    `step_attempts` is how often one step is tried in all. The delays (seconds or timedeltas) apply to steps and runs.
    The wait before attempt n is `delay * factor ** (n - 2)`, at most `max_delay`, varied at random by `jitter`
    (0.2 means up to 20 % shorter or longer). `on` and `never_on` take one error class or several.
    """

    step_attempts: int
    delay: timedelta
    factor: float
    max_delay: timedelta
    jitter: float
    on: tuple[type[BaseException], ...]
    never_on: tuple[type[BaseException], ...]

    def __init__(
        self,
        *,
        step_attempts: int = 2,
        delay: timedelta | float = 1.0,
        factor: float = 2.0,
        max_delay: timedelta | float = 600.0,
        jitter: float = 0.2,
        on: Errors = (Exception,),
        never_on: Errors = (),
    ) -> None:
        if not isinstance(step_attempts, int) or step_attempts < 1:
            raise InvalidPolicy(f"Retry: step_attempts must be a whole number of at least 1, not {step_attempts!r}")
        if not isinstance(factor, int | float) or not isinstance(jitter, int | float):
            raise InvalidPolicy("Retry: factor and jitter must be numbers")
        if not 1 <= factor < math.inf or not 0 <= jitter <= 1:
            raise InvalidPolicy("Retry: factor must be at least 1, and jitter between 0 and 1")
        values = {
            "step_attempts": step_attempts,
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
        """Whether to try again after this error."""
        return isinstance(error, self.on) and not isinstance(error, (*self.never_on, GiveUp))

    def wait_before(self, number: int, *, fraction: float) -> timedelta:
        """How long to wait before try `number` (2 is the first retry)."""
        try:
            wait = min(self.delay * self.factor ** (number - 2), self.max_delay)
        except OverflowError:
            wait = self.max_delay
        return wait * (1 + self.jitter * (2 * fraction - 1))


class TryAgain(Exception):
    """Raise it from a job to try again later. It counts as a failed attempt.

    `after` overrides the job's own delay: pass on the Retry-After of an HTTP 429.
    """

    def __init__(self, reason: str, *, after: timedelta | float | None = None) -> None:
        super().__init__(reason)
        self.after = None if after is None else _duration(after)


class Snooze(Exception):
    """Raise it from a job that can't do its work yet: the run starts again later and uses up no attempt.

    Use it when a service is known to be down, or a result is not ready. A run may snooze any number of times.
    `after` overrides the job's own delay.
    """

    def __init__(self, reason: str, *, after: timedelta | float | None = None) -> None:
        super().__init__(reason)
        self.after = None if after is None else _duration(after)


FAILURE_TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,59}")
OURS = {
    "ARGUMENTS_CHANGED",
    "BUILD_FAILED",
    "CANCELLED",
    "JOB_NOT_LOADED",
    "DEPENDENCY_FAILED",
    "INVALID_SEGMENTS",
    "PROCESS_TERMINATED",
    "RESULT_NOT_STORABLE",
    "RUN_UNREADABLE",
    "SKIPPED",
    "TAKEOVER_LIMIT",
    "TIMED_OUT",
}
"""Failure types that only the engine may set, because some of them decide what happens to other runs."""


class GiveUp(Exception):
    """Raise it from a job or a step if trying again is pointless: the run fails with this reason.

    `failure_type` is a name of your own, in capitals: `GiveUp("it needs a password", failure_type="ENCRYPTED")`.
    """

    def __init__(self, reason: str, *, failure_type: str = "ERROR") -> None:
        if not isinstance(failure_type, str) or not FAILURE_TYPE.fullmatch(failure_type) or failure_type in OURS:
            raise InvalidPolicy(
                f"GiveUp(failure_type={failure_type!r}): use a name in capitals that the engine does not use itself"
            )
        super().__init__(reason)
        self.failure_type = failure_type


def _duration(value: timedelta | float) -> timedelta:
    """Convert a timedelta or a number of seconds to a duration."""
    try:
        duration = value if isinstance(value, timedelta) else timedelta(seconds=value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidPolicy(f"{value!r} is not a duration: give a timedelta or a number of seconds") from None
    if duration < timedelta(0):
        raise InvalidPolicy(f"a delay can't be negative: {value!r}")
    return duration


def _errors(given: Errors) -> tuple[type[BaseException], ...]:
    classes = (given,) if isinstance(given, type) else tuple(given) if isinstance(given, Iterable) else (given,)
    for each in classes:
        if not isinstance(each, type) or not issubclass(each, BaseException):
            raise InvalidPolicy(f"Retry: {each!r} is not an error class")
    return classes
