"""Keys as values: who holds a key, and how many wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from holdfast.values.fields import described


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A run that has a hold on a key."""

    run_id: str
    state: Literal["running", "ready", "waits"]
    """running on its `worker`; ready, and not started; or it waits (for its next attempt at `due_at`, for runs that it
    has submitted) and keeps the key meanwhile, as key_order='strict' says"""
    worker: str | None
    due_at: datetime | None
    started_at: datetime | None = None
    """When its attempt began, if it runs."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key: how many runs may hold it at once, which ones do, and how many wait for it."""

    key: str
    limit: int
    holders: tuple[Holder, ...]
    waiting: int
    oldest_at: datetime | None
    """When the oldest run that waits was submitted."""
