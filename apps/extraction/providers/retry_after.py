"""Retry after: read the Retry-After header, which says how long a service asks us to wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

MAX_WAIT = timedelta(minutes=10)


def retry_after(headers: Mapping[str, str] | None, *, now: datetime | None = None) -> timedelta | None:
    """Return the requested wait, given in seconds or as a date, at most MAX_WAIT; None if there is no valid value."""
    value = (headers.get("Retry-After") if headers is not None else None) or ""
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value, now or datetime.now(UTC))
    if not math.isfinite(seconds):
        return None
    return timedelta(seconds=min(max(seconds, 0.0), MAX_WAIT.total_seconds()))


def _seconds_until(value: str, now: datetime) -> float:
    try:
        return (parsedate_to_datetime(value) - now).total_seconds()
    except (ValueError, TypeError):  # not a date, or a date without a time zone
        return math.nan
