"""Keys as values: the runs that hold a key, and how many wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from holdfast.values.fields import described


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A run that has a key lock."""

    run_id: str
    state: Literal["running", "ready", "waits"]
    """`running` on its `worker`, `ready` to start, or `waits`. With key_order='strict', a run keeps its key while it
    waits for its next attempt (at `due_at`) or for its children."""
    worker: str | None
    due_at: datetime | None
    started_at: datetime | None = None
    """When its attempt began, if it is running."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key: how many runs may hold it at once, which runs hold it, and how many wait for it."""

    key: str
    limit: int
    holders: tuple[Holder, ...]
    waiting: int
    oldest_at: datetime | None
    """When the oldest waiting run was submitted."""
