"""Events: what a run tells while it goes, one JSON object per line, on a descriptor that nothing else writes to."""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime

LONGEST = 16_384
LOG_LINES, LOG_LENGTH = 200, 500


class Events:
    """Writes numbered events. The last one always fits, however many there were before."""

    def __init__(self, descriptor: int, *, most: int) -> None:
        self.descriptor = descriptor
        self.most = most
        self.sequence = 0
        self.left_out = 0

    def emit(self, event: str, **fields: object) -> None:
        """Write an event, unless there were too many."""
        if self.sequence >= self.most - 1:
            self.left_out += 1
            return
        self.write(event, fields)

    def end(self, event: str, **fields: object) -> None:
        """Write the last event."""
        self.write(event, {**fields, "events_left_out": self.left_out})

    def write(self, event: str, fields: dict[str, object]) -> None:
        self.sequence += 1
        whole = {"event": event, "sequence": self.sequence, "at": datetime.now(UTC).isoformat(timespec="milliseconds")}
        line = encoded(whole | fields)
        if len(line) > LONGEST:
            line = encoded(whole | {name: shortened(value) for name, value in fields.items()})
        while line:
            line = line[os.write(self.descriptor, line) :]


def encoded(event: dict[str, object]) -> bytes:
    return json.dumps(event, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"


def shortened(value: object) -> object:
    """A field that made the line too long."""
    if isinstance(value, str):
        return value[:1000]
    if isinstance(value, (list, tuple)):
        return [shortened(one) for one in value[:10]]
    if isinstance(value, dict):
        return {str(name)[:80]: str(one)[:80] for name, one in list(value.items())[:20]}
    return value


class Prints(io.TextIOBase):
    """Stands in for stdout and stderr: what the configuration's code prints becomes `log` events, up to a number."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.rest = ""
        self.lines = 0

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Take a text; every line that is whole is an event."""
        # A line without an end must not fill the memory.
        *lines, rest = (self.rest + text[: LOG_LENGTH * LOG_LINES]).split("\n")
        self.rest = rest[:LOG_LENGTH]
        for line in lines:
            self.log(line)
        return len(text)

    def close_line(self) -> None:
        """What was printed without an end is a line too."""
        if self.rest:
            self.log(self.rest)
            self.rest = ""

    def log(self, line: str) -> None:
        self.lines += 1
        if self.lines <= LOG_LINES:
            self.events.emit("log", text=line[:LOG_LENGTH])
        elif self.lines == LOG_LINES + 1:
            self.events.emit("log", text=f"… what is printed after {LOG_LINES} lines is left out")
