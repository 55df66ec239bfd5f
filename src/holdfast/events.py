"""Events: what happened to a run, for a person to read later.

What a row already proves is not written twice: RUN_QUEUED is the row in `runs`, RUN_STARTED and the ending are the
outcome (or the lease), STEP_STARTED and STEP_FINISHED are the row in `steps`. The STEP_STARTED of a step whose first
try fails is written, because its row comes later than its STEP_RETRIED, or never. `story` puts all of it in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast import codec, cursors
from holdfast.errors import InvalidArguments
from holdfast.store.transaction import Row, Transaction


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
    "CLAIM_CONFLICT": "another lease holds the run's key, or its row in ready had another key; the run waits again",
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


def record(tx: Transaction, events: Iterable[Event]) -> None:
    rows = [
        {
            "run_id": event.run_id,
            "kind": event.kind,
            "attempt": event.attempt,
            "data": codec.compact(event.data),
            "happened_at": event.happened_at or tx.now,
        }
        for event in events
    ]
    if rows:
        tx.put("insert_events", rows=rows)


BUDGET = 10_000


@dataclass(frozen=True, kw_only=True)
class Events:
    """Recorded events of all runs with their cursors; `next` is where to go on, be there some or not."""

    events: tuple[tuple[str, Event], ...]
    next: str


def everywhere(tx: Transaction, *, after: str | None, kinds: Collection[str] | None, limit: int) -> Events:
    """What was recorded since the cursor, of all runs; at most BUDGET events are looked at.

    None is passed by: what could still be overtaken by a transaction that began earlier is not told yet.
    """
    start = (0, 0) if after is None else _read(after)
    if kinds is not None and (isinstance(kinds, str) or not set(kinds) <= KINDS.keys()):
        raise InvalidArguments(f"kinds are some of {', '.join(KINDS)}; not {kinds!r}")
    wanted = None if kinds is None else sorted(kinds)
    rows = tx.all(
        "find_all_events",
        tx=start[0],
        after=start[1],
        kinds=wanted,
        budget=limit if kinds is None else BUDGET,
        limit=limit,
    )
    told = tuple((_write(row["tx"], row["id"]), _event(row)) for row in rows if row["wanted"])
    position = (rows[-1]["tx"], rows[-1]["id"]) if rows else start
    return Events(events=told, next=_write(*position))


def end(tx: Transaction) -> str:
    """The cursor after which there is only what will be recorded from now on."""
    row = tx.one("find_events_end")
    assert row is not None
    return _write(row["tx"], row["id"])


def _write(number: int, event_id: int) -> str:
    return cursors.write("events", number, event_id)


def _read(after: str) -> tuple[int, int]:
    match cursors.read(after, "events"):
        case (int(number), int(event_id)):
            return number, event_id
    raise InvalidArguments("this is no cursor of events")


def of(tx: Transaction, run_id: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, Event]]:
    """What was recorded of a run, numbered in the order of its writing."""
    return [(row["id"], _event(row)) for row in tx.all("find_events", run_id=run_id, after=after, limit=limit)]


def last(tx: Transaction, run_id: str, *, before: int = 2**63 - 1, limit: int) -> list[tuple[int, Event]]:
    """What was recorded of a run last, in the same order."""
    rows = tx.all("find_last_events", run_id=run_id, before=before, limit=limit)
    return [(row["id"], _event(row)) for row in reversed(rows)]


def _event(row: Row) -> Event:
    reading = codec.Reading(row)
    data = reading.column("data", codec.mapping, instead=lambda _: {})
    return Event(
        run_id=row["run_id"],
        kind=row["kind"],
        attempt=row["attempt"],
        data=data if reading.unreadable is None else data | {"unreadable": codec.marker(reading.unreadable)},
        happened_at=row["happened_at"],
    )
