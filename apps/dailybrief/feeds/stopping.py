"""Stopping: what ends early everything that waits, for a server or for a turn."""

from __future__ import annotations

SLICE = 0.25
"""Seconds after which who waits looks whether it was stopped."""


class Stopped(Exception):
    """It was told to end."""
