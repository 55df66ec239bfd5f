"""Standings: where a stage stands, in a state, in counts and in words.

A stage or segment is a run, so its state follows from the place of that run; that of a split stage from its segments:

    NEW      waits                          no one can claim it yet
             outcomes, never claimed        something before it failed, or the whole was cancelled: it was skipped
    READY    ready
    RUNNING  leases
    DONE     outcomes, succeeded
    ERROR    outcomes, otherwise; or waits for its retry, until an orchestrator makes it ready again
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, get_args

from pydantic import computed_field

from holdfast.support import json_text
from holdfast.values.fields import described
from holdfast.values.runs import Snapshot, last_line


@described
@dataclass(frozen=True, kw_only=True)
class Progress:
    """Of the stages that run for a pipeline (not those that a rerun uses again): how many there are, and are done."""

    stages: int
    done: int
    begun_at: datetime | None
    """When the first of them started, if one has."""

    def took(self, run: Snapshot, *, now: datetime) -> timedelta | None:
        """How long its pipeline has been under way, or was; None if it ended before a stage began."""
        until = run.finished_at or now
        return None if self.begun_at is None or self.begun_at > until else until - self.begun_at


def note(run: Snapshot, far: Progress | None) -> str:
    """The one thing to know about a run, for a list; `far` says how far a pipeline is."""
    if run.unreadable is not None:
        return json_text.marker(run.unreadable)
    if run.cancel_requested_at is not None and not run.ended:
        return "asked to stop"
    if run.failure_type is not None:
        last = last_line(run.error or "")
        return f"{run.failure_type}: {last}" if last else run.failure_type
    if far is not None and far.begun_at is not None and not run.ended:
        return f"{far.done} of {far.stages} stages done"
    if run.due_at is not None and run.tries:
        return f"to be tried again at {run.due_at:%H:%M:%S} UTC: {run.because}"
    return run.because or ""


@described
@dataclass(frozen=True, kw_only=True)
class Segment:
    """One segment of a split stage, and its run."""

    name: str
    run_id: str
    state: StageState
    fate: Fate | None
    """What an ERROR is, or that a NEW one was skipped."""
    attempt: int
    retry_at: datetime | None
    reason: str | None
    """Why it was skipped."""


@dataclass(frozen=True, kw_only=True)
class PipelineInfo:
    """A pipeline's run and its stages, in the order in which they were declared."""

    run: Snapshot
    stages: tuple[StageInfo, ...]
    progress: Progress
    troubles: tuple[Trouble, ...]
    """The runs that failed, or failed and will be tried again; the first few."""


@described
@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A stage's or segment's run, and the last line of what went wrong."""

    run_id: str
    stage: str
    segment: str | None
    """Left empty for the run of a stage that is not split."""
    state: str
    """`queued` while it waits to be tried again, at `retry_at`."""
    retry_at: datetime | None
    error: str

    @property
    def name(self) -> str:
        """audio[3], or render."""
        return self.stage if self.segment is None else f"{self.stage}[{self.segment}]"


StageState: TypeAlias = Literal["NEW", "READY", "RUNNING", "DONE", "ERROR"]


STATES: tuple[StageState, ...] = get_args(StageState)


Fate: TypeAlias = Literal["failed", "cancelled", "skipped", "retrying"]


FATES: tuple[Fate, ...] = get_args(Fate)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs of one stage that stand alike; `fate` says what an ERROR is, or that they were skipped."""

    state: StageState
    ended: bool
    fate: Fate | None = None
    retry_at: datetime | None = None
    reason: str | None = None
    runs: int = 1


@described
@dataclass(frozen=True, kw_only=True)
class StageInfo:
    """One stage of a pipeline's run; `segments` counts those of a split stage by their states."""

    name: str
    version: str
    run_id: str
    state: StageState
    ended: bool
    """Whether that is for good: a stage in ERROR may still be tried again, a NEW one that has ended never starts."""
    after: tuple[str, ...]
    split: bool
    reused: bool
    """Its run belongs to the pipeline that this one repeats."""
    segments: Mapping[StageState, int] = field(default_factory=dict)
    errors: Mapping[Fate, int] = field(default_factory=dict)
    """How many of its runs did not complete: failed, cancelled or to be tried again (ERROR), or skipped (NEW)."""
    retry_at: datetime | None = None
    """When the first of those is tried again."""
    reason: str | None = None
    """Why a NEW stage that has ended was skipped."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> int:
        """How many runs do its work, as far as that is known."""
        return sum(self.segments.values()) if self.split else 1

    @computed_field  # type: ignore[prop-decorator]
    @property
    def done(self) -> int:
        """How many of them have completed."""
        return self.segments.get("DONE", 0) if self.split else int(self.state == "DONE")


def state_of(place: str | None, state: str, *, retrying: bool, claimed: bool) -> StageState:
    """The state of a stage or segment whose run stands there; `claimed` says whether a worker ever had it."""
    match place:
        case "outcomes" if state == "succeeded":
            return "DONE"
        case "outcomes":
            return "ERROR" if claimed else "NEW"
        case "leases":
            return "RUNNING"
        case "ready":
            return "READY"
    return "ERROR" if retrying else "NEW"


def fate_of(state: StageState, *, ended: bool, run_state: str) -> Fate | None:
    """What an ERROR is, or that what is NEW was skipped; None for anything else."""
    match state:
        case "ERROR" if not ended:
            return "retrying"
        case "ERROR":
            return "cancelled" if run_state == "cancelled" else "failed"
        case "NEW" if ended:
            return "skipped"
    return None


def in_words(info: StageInfo, *, because: str = "") -> list[str]:
    """What is not done: '1 running', '2 ready', '1 failed', '1 to be tried again at 03:04:09: OSError: mic fell'.

    Of a skipped stage: 'skipped', 'because stage audio failed: segment 3 failed: OSError: mic fell'.
    """
    order: tuple[StageState, ...] = ("RUNNING", "READY", "NEW")
    left = {**info.segments, "NEW": max(info.segments.get("NEW", 0) - info.errors.get("skipped", 0), 0)}
    words = [f"{left[state]} {state.lower()}" for state in order if left.get(state)]
    for fate in FATES:
        if not info.errors.get(fate):
            continue
        count = f"{info.errors[fate]} " if info.split and info.total else ""
        words.append(f"{count}{_retrying(info, because) if fate == 'retrying' else fate}")
    if info.reason:
        words.append(f"because {info.reason}")
    return words


def _retrying(info: StageInfo, because: str) -> str:
    at = f" at {info.retry_at:%H:%M:%S} UTC" if info.retry_at is not None else ""
    return f"to be tried again{at}" + (f": {because}" if because else "")
