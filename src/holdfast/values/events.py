"""Events as values: what happened to a run, and what each kind means."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.values.runs import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A record of something that happened, usually to a run; KINDS explains each kind."""

    run_id: str | None
    kind: str
    claim: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
    happened_at: datetime | None = None


KINDS = {
    "RUN_QUEUED": "the run was submitted",
    "RUN_STARTED": "a worker claimed the run and began",
    "RUN_SUCCEEDED": "the run ended with a result",
    "RUN_FAILED": "the run ended with an error",
    "RUN_TIMED_OUT": "the run took longer than its timeout and was stopped",
    "RUN_CANCELLED": "the run was cancelled",
    "RUN_RETRIED": "an attempt failed; the run waits to be tried again",
    "RUN_SNOOZED": "the job postponed its run; no attempt was used up",
    "RUN_WAITING_FOR_CHILDREN": "the run waits for its children without occupying a worker; no attempt was used up",
    "RUN_RELEASED": "the run went back to its queue, for example because its worker shut down; no attempt was used up",
    "RUN_TAKEN_OVER": "the run's worker was lost, and its lease was removed",
    "CANCEL_REQUESTED": "a running run was asked to stop",
    "LOOP_BLOCKED": "the run's code blocked the event loop that async runs share; `where` and `stack` locate the code",
    "STEP_STARTED": "a step began",
    "STEP_RETRIED": "a step failed and is tried again",
    "STEP_FINISHED": "a step ended; its result is stored",
    "STEP_FORGOTTEN": "the job deleted the stored result of a step; the next step with its name is executed again",
    "PROGRESS": "the run reported its progress",
    "LOG": "a log record made during the run",
    "SLOTS_MISSED": "no worker handled a schedule for so long that only this event records its oldest missed slots",
    "OPERATOR_ACTION": "a person took an action: who, which action, and on what",
    "DATABASE_BUSY": "a worker found the database locked and tried again; its next commit records this once",
}


@dataclass(frozen=True, kw_only=True)
class Events:
    """Events of all runs with their cursors. `next` is the cursor to continue from, even if there are no events."""

    events: tuple[tuple[str, Event], ...]
    next: str


ENDS_AN_ATTEMPT = ("RUN_RETRIED", "RUN_SNOOZED", "RUN_WAITING_FOR_CHILDREN", "RUN_RELEASED", "RUN_TAKEN_OVER")


@dataclass(frozen=True, kw_only=True)
class TimelinePage:
    """Events of a run with their cursors, and the run itself.

    `ended` is true if the run has ended and these are its last events.
    """

    events: tuple[tuple[str, Event], ...]
    run: Snapshot
    ended: bool


@dataclass(frozen=True, kw_only=True)
class ChangeMarkers:
    """Short texts that change when the data does.

    `runs` changes when a run is submitted, starts or ends, or an event is recorded. `workers` changes when a worker
    starts, reports or stops.
    """

    runs: str
    workers: str
