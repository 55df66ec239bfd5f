"""Ids of an application's own rows."""

from __future__ import annotations

import secrets
from datetime import datetime


def new_id(now: datetime) -> str:
    """An id that no one can guess; later ones sort after earlier ones."""
    return f"{int(now.timestamp() * 1000):012x}{secrets.token_hex(10)}"
