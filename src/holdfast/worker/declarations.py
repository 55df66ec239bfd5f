"""Declarations: what the application's code sets for its workers, and where each worker notes its last poll."""

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
    """Grows while the application declares more; a worker follows."""

    schedules: Mapping[str, Schedule]
    artifact_store: Callable[[], ArtifactStore]
    """Opened on first use."""
    per_worker: dict[str, int] = field(default_factory=dict)
    """The most runs of a queue that one worker runs at once, where `hf.queue` limits them."""
    failure_hooks: list[FailureHook] = field(default_factory=list)
    polls: dict[str, float] = field(default_factory=dict)
    """For each worker of this process when it last polled and the database answered (`clock.elapsed`)."""
