"""Signals: the first SIGINT, SIGTERM or SIGHUP requests a stop; the second one stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopNow(BaseException):
    """A second signal arrived: stop without waiting for anything."""


class Signals:
    """Records whether this process was asked to stop."""

    def __init__(self) -> None:
        self.stop_requested = threading.Event()

    def listen(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._receive)

    def wait(self, seconds: float) -> bool:
        """Wait up to this long for a stop request; return whether there is one."""
        return self.stop_requested.wait(seconds)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.stop_requested.is_set():
            for each in SIGNALS:
                signal.signal(each, signal.SIG_IGN)  # a third signal must not interrupt the clean-up
            raise StopNow
        self.stop_requested.set()
