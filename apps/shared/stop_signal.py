"""Stop signal: an event that is set by SIGTERM or Ctrl-C."""

from __future__ import annotations

import signal
import threading


def stop_event() -> threading.Event:
    """Install the signal handlers and return the event that they set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
