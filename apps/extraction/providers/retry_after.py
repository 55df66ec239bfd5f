"""Retry-After: how long a service asks us to wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST = timedelta(minutes=10)


def retry_after(headers: Mapping[str, str] | None, *, now: datetime | None = None) -> timedelta | None:
    """The pause that it says, in seconds or as a date; None where it says nothing that can be followed."""
    said = (headers.get("Retry-After") if headers is not None else None) or ""
    try:
        seconds = float(said)
    except ValueError:
        seconds = _until(said, now or datetime.now(UTC))
    if not math.isfinite(seconds):
        return None
    return timedelta(seconds=min(max(seconds, 0.0), LONGEST.total_seconds()))


def _until(said: str, now: datetime) -> float:
    try:
        return (parsedate_to_datetime(said) - now).total_seconds()
    except (ValueError, TypeError):  # no date, or one without its zone
        return math.nan
