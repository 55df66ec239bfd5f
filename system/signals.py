"""Signals: the first Ctrl-C or SIGTERM asks to stop, the second stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopNow(BaseException):
    """The second signal: stop without waiting for anything."""


class Signals:
    """Whether someone asked this process to stop."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def listen(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._heard)

    def wait(self, seconds: float) -> bool:
        """Whether someone asked to stop, at the latest after so many seconds."""
        return self.asked.wait(seconds)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.asked.is_set():
            for each in SIGNALS:
                signal.signal(each, signal.SIG_IGN)  # a third one must not disturb the ending
            raise StopNow
        self.asked.set()
