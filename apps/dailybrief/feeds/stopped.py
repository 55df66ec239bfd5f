"""Stopped: raised where a fetch waits, for a server or for its turn, when the job is told to stop."""

from __future__ import annotations

SLICE = 0.25
"""Seconds after which who waits looks whether it was stopped."""


class Stopped(Exception):
    """It was told to end."""
