"""Stopping: how a process of an application hears that it is to end."""

from __future__ import annotations

import signal
import threading


def asked_to_stop() -> threading.Event:
    """What is set when this process is asked to stop, by SIGTERM or Ctrl-C."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    return asked
