"""Log records of a run as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.values.fields import described

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@described
@dataclass(frozen=True, kw_only=True)
class LogRecord:
    """One record of a run's log; `level` is a level name of Python's logging or a custom one."""

    happened_at: datetime | None
    claim: int | None
    level: str
    logger: str
    message: str


@described
@dataclass(frozen=True, kw_only=True)
class Logs:
    """Some of a run's log records."""

    records: tuple[LogRecord, ...]
    next: str
    """The cursor to continue from, even if there are no more records yet."""
    more: bool
    """Whether more records can be read now."""
