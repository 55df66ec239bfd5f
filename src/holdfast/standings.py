"""Standings: where a stage stands, in a state, in counts and in words.

A stage or segment is a run, so its state follows from the place of that run; that of a split stage from its segments:

    NEW      waits                          no one can claim it yet
    READY    ready
    RUNNING  leases
    DONE     outcomes, succeeded
    ERROR    outcomes, otherwise; or waits for its retry, until an orchestrator makes it ready again
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias, get_args

StageState: TypeAlias = Literal["NEW", "READY", "RUNNING", "DONE", "ERROR"]
STATES: tuple[StageState, ...] = get_args(StageState)
Fate: TypeAlias = Literal["failed", "cancelled", "skipped", "retrying"]
FATES: tuple[Fate, ...] = get_args(Fate)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs of one stage that stand alike; `fate` says what an ERROR is."""

    state: StageState
    ended: bool
    fate: Fate | None = None
    retry_at: datetime | None = None
    runs: int = 1


@dataclass(frozen=True, kw_only=True)
class StageInfo:
    """One stage of a pipeline's run; `segments` counts those of a split stage by their states."""

    name: str
    version: str
    run_id: str
    state: StageState
    ended: bool
    """Whether that is for good: a stage in ERROR may still be tried again."""
    after: tuple[str, ...]
    split: bool
    reused: bool
    """Its run belongs to the pipeline that this one repeats."""
    segments: Mapping[StageState, int] = field(default_factory=dict)
    errors: Mapping[Fate, int] = field(default_factory=dict)
    """What its ERRORs are: failed, cancelled, skipped as something before it failed, or to be tried again."""
    retry_at: datetime | None = None
    """When the first of those is tried again."""

    @property
    def total(self) -> int:
        """How many runs do its work, as far as that is known."""
        return sum(self.segments.values()) if self.split else 1

    @property
    def done(self) -> int:
        return self.segments.get("DONE", 0) if self.split else int(self.state == "DONE")


def state_of(place: str | None, state: str, *, retrying: bool) -> StageState:
    """The state of a stage or segment whose run stands there."""
    match place:
        case "outcomes":
            return "DONE" if state == "succeeded" else "ERROR"
        case "leases":
            return "RUNNING"
        case "ready":
            return "READY"
    return "ERROR" if retrying else "NEW"


def fate_of(state: StageState, *, ended: bool, run_state: str, failure_type: str | None) -> Fate | None:
    """What an ERROR is; None for what is none."""
    if state != "ERROR":
        return None
    if not ended:
        return "retrying"
    if failure_type in ("SKIPPED", "NEED_FAILED"):
        return "skipped"
    return "cancelled" if run_state == "cancelled" else "failed"


def in_words(info: StageInfo, *, because: str = "") -> list[str]:
    """What is not done: '1 running', '2 ready', '1 failed', '1 to be tried again at 03:04:09: OSError: mic fell'."""
    order: tuple[StageState, ...] = ("RUNNING", "READY", "NEW")
    words = [f"{info.segments[state]} {state.lower()}" for state in order if info.segments.get(state)]
    for fate in FATES:
        if not info.errors.get(fate):
            continue
        count = f"{info.errors[fate]} " if info.split and info.total else ""
        words.append(f"{count}{_retrying(info, because) if fate == 'retrying' else fate}")
    return words


def _retrying(info: StageInfo, because: str) -> str:
    at = f" at {info.retry_at:%H:%M:%S} UTC" if info.retry_at is not None else ""
    return f"to be tried again{at}" + (f": {because}" if because else "")
