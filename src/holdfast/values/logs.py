"""Log records of a run as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.values.fields import described

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@described
@dataclass(frozen=True, kw_only=True)
class LogRecord:
    """One record of a run's log; `level` is a name of Python's logging, or one of the user's own."""

    happened_at: datetime | None
    attempt: int | None
    level: str
    logger: str
    message: str


@described
@dataclass(frozen=True, kw_only=True)
class Logs:
    """Some of a run's log records."""

    records: tuple[LogRecord, ...]
    next: str
    """Where to go on, be there more by now or not."""
    more: bool
    """Whether there is more to be had at once."""
