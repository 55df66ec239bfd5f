"""Pipelines as values: the state of each stage, as a name, as counts and in words.

A stage or segment is a run, so its state follows from the table that holds the run. The state of a split stage follows
from its segments.

    NEW      waits                          no worker can claim it yet
             outcomes, never claimed        skipped: an earlier stage failed, or the pipeline was cancelled
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
    """How many stages a pipeline runs and how many of them are done, not counting stages that a rerun reuses."""

    stages: int
    done: int
    begun_at: datetime | None
    """When the first of these stages started, if any has."""

    def took(self, run: Snapshot, *, now: datetime) -> timedelta | None:
        """Return how long the pipeline has been running, or ran; None if no stage had begun by then."""
        until = run.finished_at or now
        return None if self.begun_at is None or self.begun_at > until else until - self.begun_at


def note(run: Snapshot, progress: Progress | None) -> str:
    """Return the most important fact about a run, for a list. `progress` is given for a pipeline."""
    if run.unreadable is not None:
        return json_text.marker(run.unreadable)
    if run.cancel_requested_at is not None and not run.ended:
        return "asked to stop"
    if run.failure_type is not None:
        last = last_line(run.error or "")
        return f"{run.failure_type}: {last}" if last else run.failure_type
    if progress is not None and progress.begun_at is not None and not run.ended:
        return f"{progress.done} of {progress.stages} stages done"
    if run.due_at is not None and run.attempt:
        return f"to be tried again at {run.due_at:%H:%M:%S} UTC: {run.reason}"
    return run.reason or ""


@described
@dataclass(frozen=True, kw_only=True)
class Segment:
    """One segment of a split stage, and its run."""

    name: str
    run_id: str
    state: StageState
    error_kind: ErrorKind | None
    """The kind of an ERROR, or `skipped` for a NEW segment that will never start."""
    claim: int
    retry_at: datetime | None
    reason: str | None
    """Why it was skipped."""


@dataclass(frozen=True, kw_only=True)
class PipelineInfo:
    """A pipeline's run and its stages, in the order in which they were declared."""

    run: Snapshot
    stages: tuple[StageInfo, ...]
    progress: Progress
    failures: tuple[StageFailure, ...]
    """The first few runs that failed, including those that will be tried again."""


@described
@dataclass(frozen=True, kw_only=True)
class StageFailure:
    """The run of a stage or segment that failed, and the last line of its error."""

    run_id: str
    stage: str
    segment: str | None
    """Null for the run of a stage that is not split."""
    state: str
    """`queued` while it waits to be tried again, at `retry_at`."""
    retry_at: datetime | None
    error: str

    @property
    def name(self) -> str:
        """The stage's name, with the segment if there is one: audio[3]."""
        return self.stage if self.segment is None else f"{self.stage}[{self.segment}]"


StageState: TypeAlias = Literal["NEW", "READY", "RUNNING", "DONE", "ERROR"]


STATES: tuple[StageState, ...] = get_args(StageState)


ErrorKind: TypeAlias = Literal["failed", "cancelled", "skipped", "retrying"]


ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs of one stage in the same state; `error_kind` is the kind of an ERROR, or `skipped`."""

    state: StageState
    ended: bool
    error_kind: ErrorKind | None = None
    retry_at: datetime | None = None
    reason: str | None = None
    runs: int = 1


@described
@dataclass(frozen=True, kw_only=True)
class StageInfo:
    """One stage of a pipeline's run; `segments` counts the segments of a split stage by state."""

    name: str
    version: str
    run_id: str
    state: StageState
    ended: bool
    """Whether the state is final. A stage in ERROR may still be tried again; a NEW one that has ended never starts."""
    after: tuple[str, ...]
    split: bool
    reused: bool
    """Whether its run belongs to an earlier run of the pipeline, which this one repeats."""
    segments: Mapping[StageState, int] = field(default_factory=dict)
    errors: Mapping[ErrorKind, int] = field(default_factory=dict)
    """How many of its runs did not complete, by kind: failed, cancelled and retrying (ERROR), and skipped (NEW)."""
    retry_at: datetime | None = None
    """When the first of the failed runs is tried again."""
    reason: str | None = None
    """Why a NEW stage that has ended was skipped."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> int:
        """How many runs the stage has, as far as known."""
        return sum(self.segments.values()) if self.split else 1

    @computed_field  # type: ignore[prop-decorator]
    @property
    def done(self) -> int:
        """How many of its runs are done."""
        return self.segments.get("DONE", 0) if self.split else int(self.state == "DONE")


def state_of(place: str | None, state: str, *, retrying: bool, claimed: bool) -> StageState:
    """Return the state of a stage or segment from its run's table and state; `claimed`: whether it was ever claimed."""
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


def error_kind_of(state: StageState, *, ended: bool, run_state: str) -> ErrorKind | None:
    """Return the kind of an ERROR, or `skipped` for a NEW run that has ended; None for any other state."""
    match state:
        case "ERROR" if not ended:
            return "retrying"
        case "ERROR":
            return "cancelled" if run_state == "cancelled" else "failed"
        case "NEW" if ended:
            return "skipped"
    return None


def in_words(info: StageInfo, *, reason: str = "") -> list[str]:
    """Describe unfinished runs: '1 running', '2 ready', '1 failed', '1 to be tried again at 03:04:09: OSError: …'.

    For a skipped stage: 'skipped', 'because stage audio failed: segment 3 failed: OSError: …'.
    """
    order: tuple[StageState, ...] = ("RUNNING", "READY", "NEW")
    left = {**info.segments, "NEW": max(info.segments.get("NEW", 0) - info.errors.get("skipped", 0), 0)}
    words = [f"{left[state]} {state.lower()}" for state in order if left.get(state)]
    for error_kind in ERROR_KINDS:
        if not info.errors.get(error_kind):
            continue
        count = f"{info.errors[error_kind]} " if info.split and info.total else ""
        words.append(f"{count}{_retrying(info, reason) if error_kind == 'retrying' else error_kind}")
    if info.reason:
        words.append(f"because {info.reason}")
    return words


def _retrying(info: StageInfo, reason: str) -> str:
    at = f" at {info.retry_at:%H:%M:%S} UTC" if info.retry_at is not None else ""
    return f"to be tried again{at}" + (f": {reason}" if reason else "")
