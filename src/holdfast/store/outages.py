"""Outages: a process that starts while the database is down waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

from holdfast.support.clock import Clock
from holdfast.support.errors import StoreBusy, StoreRefused, StoreUnavailable

log = logging.getLogger("holdfast")

FIRST, LONGEST = 0.1, 2.0  # seconds between two attempts; each pause is twice the one before
LOG_EVERY = 15.0  # seconds between two log lines


def outlast(
    attempt: Callable[[], object],
    *,
    wait: timedelta | None,
    clock: Clock,
    stopping: threading.Event | None = None,
) -> bool:
    """Call `attempt` until the database answers. Return False if `stopping` was set before that.

    After `wait`, raise the last StoreUnavailable or StoreBusy. Any other error is raised at once, including
    StoreRefused, because waiting does not correct a wrong password.
    """
    stopping = stopping or threading.Event()
    limit = wait.total_seconds() if wait is not None else 0.0
    began, logged_at, pause = clock.elapsed(), None, FIRST
    while not stopping.is_set():
        try:
            attempt()
        except (StoreUnavailable, StoreBusy) as error:
            waited = clock.elapsed() - began
            left = limit - waited
            if isinstance(error, StoreRefused) or left <= 0:
                raise
            if logged_at is None or waited - logged_at >= LOG_EVERY:
                log.warning("waiting for the database, up to %.0f s more: %s", left, error)
                logged_at = waited
            stopping.wait(min(pause, left))
            pause = min(pause * 2, LONGEST)
        else:
            if logged_at is not None:
                log.warning("the database answered after %.0f s", clock.elapsed() - began)
            return True
    return False
