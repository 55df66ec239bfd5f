"""Keys as values: who holds a key, and how many wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A run that has a hold on a key.

    state  running on its `worker`; ready, and not started; or it waits (for its next attempt at `due_at`, for runs that
           it has submitted) and keeps the key meanwhile, as key_order='strict' says
    """

    run_id: str
    state: Literal["running", "ready", "waits"]
    worker: str | None
    due_at: datetime | None
    started_at: datetime | None = None
    """When its attempt began, if it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key: how many may hold it at once, who does, how many wait, and when the oldest of these was submitted."""

    key: str
    limit: int
    holders: tuple[Holder, ...]
    waiting: int
    oldest_at: datetime | None
