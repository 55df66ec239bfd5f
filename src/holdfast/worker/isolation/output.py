"""Output: stores the printed lines of a run's process as log events of the run, within limits."""

from __future__ import annotations

import logging
import os
from typing import Any

from holdfast.worker.run_services import RunServices

MAX_LINE, MAX_LINES, MAX_BYTES, TAIL = 10_000, 10_000, 1_000_000, 2_000


class Output:
    """Standard output or standard error of one process."""

    def __init__(self, name: str, services: RunServices, *, level: str) -> None:
        self._name, self._services = name, services
        self._level = logging.INFO if name == "stdout" else logging.WARNING
        self._wanted = self._level >= getattr(logging, level.upper())
        self._rest = b""
        self._lines = self._bytes = 0
        self._tail = b""

    @property
    def tail(self) -> str:
        """The end of the output, which often shows why a process died."""
        return self._tail.decode(errors="replace").strip()

    def read(self, stream: Any) -> bool:
        """Read the available output; False at the end of the stream."""
        try:
            piece = os.read(stream.fileno(), 1 << 16)
        except BlockingIOError:
            return True
        self._tail = (self._tail + piece)[-TAIL:]
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._tell(line)
        if len(self._rest) > MAX_LINE:
            self._tell(self._rest)
            self._rest = b""
        return piece != b""

    def end(self) -> None:
        if self._rest:
            self._tell(self._rest)
            self._rest = b""

    def _tell(self, line: bytes) -> None:
        if not self._wanted or self._full() or not line.strip():
            return
        self._lines += 1
        self._bytes += len(line)
        text = line.decode(errors="replace").rstrip("\r").replace("\x00", "\\0")
        if len(text) > MAX_LINE:
            text = f"{text[:MAX_LINE]}…"
        self._event(text)
        if self._full():
            self._event(f"output limit reached; further {self._name} is not stored")

    def _full(self) -> bool:
        return self._lines >= MAX_LINES or self._bytes >= MAX_BYTES

    def _event(self, text: str) -> None:
        level = logging.getLevelName(self._level)
        self._services.record_event("LOG", {"level": level, "logger": self._name, "message": text})
