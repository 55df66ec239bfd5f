"""Retries: how often a thing is tried, how long to wait between, and for which errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from holdfast.errors import InvalidPolicy


@dataclass(frozen=True, kw_only=True)
class Retry:
    """`steps` is the number of tries of one step in all; the delays serve steps and runs alike.

    The wait before try n is `delay * factor ** (n - 2)`, at most `max_delay`, spread by `jitter`
    (0.2 means: up to a fifth shorter or longer).
    """

    steps: int = 2
    delay: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    max_delay: timedelta = timedelta(minutes=10)
    jitter: float = 0.2
    on: tuple[type[BaseException], ...] = field(default=(Exception,))
    never_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InvalidPolicy(f"Retry(steps={self.steps}): a step is tried at least once")
        if self.delay < timedelta(0) or self.max_delay < timedelta(0):
            raise InvalidPolicy("Retry: delays can't be negative")
        if self.factor < 1 or not 0 <= self.jitter <= 1:
            raise InvalidPolicy("Retry: factor is at least 1, jitter lies between 0 and 1")

    def applies_to(self, error: BaseException) -> bool:
        """Whether this error is one that is tried again."""
        return isinstance(error, self.on) and not isinstance(error, self.never_on)

    def wait_before(self, number: int, *, fraction: float) -> timedelta:
        """How long to wait before try `number` (2 is the first retry)."""
        try:
            wait = min(self.delay * self.factor ** (number - 2), self.max_delay)
        except OverflowError:
            wait = self.max_delay
        return wait * (1 + self.jitter * (2 * fraction - 1))


class TryAgain(Exception):
    """Raise it from a job to be run again after a while; it counts as a failed attempt.

    `after` overrides the job's own delay: an HTTP 429 passes its Retry-After on.
    """

    def __init__(self, reason: str, *, after: timedelta | None = None) -> None:
        super().__init__(reason)
        self.after = after
