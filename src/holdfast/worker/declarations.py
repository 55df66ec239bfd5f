"""Declarations: what the application declares for its workers, and the time of each worker's last poll."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.artifacts.backends.base import ArtifactStore
    from holdfast.schedules.definitions import Schedule
    from holdfast.values.runs import Snapshot

FailureHook = Callable[["Snapshot"], None]


@dataclass(frozen=True, kw_only=True)
class Declarations:
    """Shared with running workers, which pick up declarations that are added later."""

    schedules: Mapping[str, Schedule]
    artifact_store: Callable[[], ArtifactStore]
    """Opened on first use."""
    per_worker: dict[str, int] = field(default_factory=dict)
    """Per queue, how many of its runs one worker may execute at once, if `hf.queue` sets a limit."""
    failure_hooks: list[FailureHook] = field(default_factory=list)
    polls: dict[str, float] = field(default_factory=dict)
    """When each worker of this process last polled the database successfully, in seconds of `clock.elapsed`."""
