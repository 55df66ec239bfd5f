"""Log records of a run as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@dataclass(frozen=True, kw_only=True)
class LogRecord:
    """One record of a run's log; `level` is a name of Python's logging, or one of the user's own."""

    happened_at: datetime | None
    attempt: int | None
    level: str
    logger: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Logs:
    """Some of a run's log records.

    next  where to go on, be there more by now or not
    more  whether all that there is by now has been looked at, or more is to be had at once
    """

    records: tuple[LogRecord, ...]
    next: str
    more: bool
