"""Events as values: what happened to a run, and what each kind means."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.values.runs import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, to a run or to none in particular; KINDS says what each kind means."""

    run_id: str | None
    kind: str
    attempt: int | None = None
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
    "RUN_PUT_OFF": "the run asked to be tried later, before it had tried anything; no attempt was used up",
    "RUN_WAITS": "the run waits for runs that it has submitted, and holds no worker meanwhile; no attempt was used up",
    "RUN_HANDED_BACK": "its worker shut down, or another run blocked its event loop; no attempt was used up",
    "RUN_TAKEN_OVER": "the run's worker went silent; the run was taken from it",
    "CANCEL_REQUESTED": "someone asked the running run to stop",
    "LOOP_BLOCKED": "the run's code blocked the event loop that async runs share; `where` and `stack` say where",
    "STEP_STARTED": "a step began",
    "STEP_RETRIED": "a step failed and is tried again",
    "STEP_FINISHED": "a step ended; its result is remembered",
    "STEP_FORGOTTEN": "the job forgot the result of a step; the next use of its name does it again",
    "PROGRESS": "the run told how far it is",
    "LOG": "a log record made during the run",
    "SLOTS_PASSED": "a schedule was not looked after for so long that its oldest slots were missed without a row each",
    "OPERATED": "someone steered by hand: who, what they did and to what",
    "SCHEDULER_CONTENTION": "a worker found the database locked and tried again; one event for each block",
}


@dataclass(frozen=True, kw_only=True)
class Events:
    """Recorded events of all runs with their cursors; `next` is where to go on, be there some or not."""

    events: tuple[tuple[str, Event], ...]
    next: str


ENDS_AN_ATTEMPT = ("RUN_RETRIED", "RUN_PUT_OFF", "RUN_WAITS", "RUN_HANDED_BACK", "RUN_TAKEN_OVER")


@dataclass(frozen=True, kw_only=True)
class News:
    """Events of a run with their cursors, the run as it stood, and whether it has ended and all of it is told."""

    events: tuple[tuple[str, Event], ...]
    run: Snapshot
    ended: bool


@dataclass(frozen=True, kw_only=True)
class Signs:
    """Short texts: `runs` is another one whenever a run came, began or ended or something was recorded, `workers`
    whenever one of them came, spoke or went."""

    runs: str
    workers: str
