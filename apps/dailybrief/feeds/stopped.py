"""Stopped: ends a fetch that waits for a server or a host when the job is stopped."""

from __future__ import annotations

CHECK_INTERVAL = 0.25
"""Seconds between two checks for a stop while waiting."""


class Stopped(Exception):
    """The job was stopped."""
