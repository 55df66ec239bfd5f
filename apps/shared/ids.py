"""Ids: primary keys for an application's own rows."""

from __future__ import annotations

import secrets
from datetime import datetime


def new_id(now: datetime) -> str:
    """Make an id that can't be guessed; ids sort by the time they were made."""
    return f"{int(now.timestamp() * 1000):012x}{secrets.token_hex(10)}"
