"""Logs: each line is a JSON object with time, level, logger, message, and the fields of the record."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

log = logging.getLogger("dailybrief")


def log_event(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event with a stable name, which log queries can rely on."""
    log.log(level, event, extra={"fields": {"event": event} | fields})


def to_stdout(level: str = "INFO") -> None:
    """Make every logger of this process write JSON lines to standard output."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON; a traceback is in the field `error`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=_plain, ensure_ascii=False)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
