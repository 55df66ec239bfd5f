"""Events: reports a run's progress as one JSON object per line, on a descriptor reserved for it."""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime

MAX_EVENT_BYTES = 16_384
LOG_LINES, LOG_LENGTH = 200, 500


class Events:
    """Writes numbered events, at most `max_events`; the last one is always written."""

    def __init__(self, descriptor: int, *, max_events: int) -> None:
        self.descriptor = descriptor
        self.max_events = max_events
        self.sequence = 0
        self.left_out = 0

    def emit(self, event: str, **fields: object) -> None:
        """Write an event, unless the maximum is reached."""
        if self.sequence >= self.max_events - 1:
            self.left_out += 1
            return
        self.write(event, fields)

    def end(self, event: str, **fields: object) -> None:
        """Write the last event."""
        self.write(event, {**fields, "events_left_out": self.left_out})

    def write(self, event: str, fields: dict[str, object]) -> None:
        self.sequence += 1
        common = {"event": event, "sequence": self.sequence, "at": datetime.now(UTC).isoformat(timespec="milliseconds")}
        line = encoded(common | fields)
        if len(line) > MAX_EVENT_BYTES:
            line = encoded(common | {name: shortened(value) for name, value in fields.items()})
        while line:
            line = line[os.write(self.descriptor, line) :]


def encoded(event: dict[str, object]) -> bytes:
    return json.dumps(event, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"


def shortened(value: object) -> object:
    """Shorten the value of a field in an event that is too long."""
    if isinstance(value, str):
        return value[:1000]
    if isinstance(value, (list, tuple)):
        return [shortened(one) for one in value[:10]]
    if isinstance(value, dict):
        return {str(name)[:80]: str(one)[:80] for name, one in list(value.items())[:20]}
    return value


class PrintCapture(io.TextIOBase):
    """Replaces stdout and stderr: lines that the configuration's code prints become `log` events, up to a maximum."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.rest = ""
        self.lines = 0

    def writable(self) -> bool:
        """Return True, as text streams must."""
        return True

    def write(self, text: str) -> int:
        """Log each complete line; keep the rest until its line ends."""
        # Cut the text, so that a line without an end can't fill the memory.
        *lines, rest = (self.rest + text[: LOG_LENGTH * LOG_LINES]).split("\n")
        self.rest = rest[:LOG_LENGTH]
        for line in lines:
            self.log(line)
        return len(text)

    def close_line(self) -> None:
        """Log the last line if it has no line end."""
        if self.rest:
            self.log(self.rest)
            self.rest = ""

    def log(self, line: str) -> None:
        self.lines += 1
        if self.lines <= LOG_LINES:
            self.events.emit("log", text=line[:LOG_LENGTH])
        elif self.lines == LOG_LINES + 1:
            self.events.emit("log", text=f"… output after {LOG_LINES} lines is left out")
