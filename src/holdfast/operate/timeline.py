"""Timeline: all events of one run, at once (`timeline`) or a page at a time with cursors (`timeline_page`).

    queued     from the run's row
    starts     by claim: from the lease, the outcome, or the event that ended the attempt
    steps      by claim and number: the fence makes sure that they are written one after the other
    recorded   by number: a transaction that writes an event locks the run first, so numbers are in the order of commits
    the end    after everything else

These sources are merged by time; the events of one source always keep their order. A cursor holds the position in each
source, so a reader who continues from a cursor misses no event and gets none twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import TypeAlias

from holdfast.runs import events, steps
from holdfast.runs.snapshot import get_snapshot
from holdfast.store.transaction import Transaction
from holdfast.support import cursors, json_text
from holdfast.support.errors import InvalidArguments
from holdfast.values.events import ENDS_AN_ATTEMPT, Event, TimelinePage
from holdfast.values.runs import Snapshot, StepTimes

ALL = 2**31 - 1


Recorded: TypeAlias = deque[tuple[int, Event]]


StepEvents: TypeAlias = deque[tuple[dict[str, int], Event]]


@dataclass(frozen=True, slots=True)
class Position:
    """How far each source has been read. `begun` is 1 if the start of the step has been read, but not its end."""

    recorded: int = 0
    started: int = 0
    claim: int = 0
    step: int = 0
    begun: int = 0
    ended: int = 0


def timeline_page(tx: Transaction, run_id: str, *, after: str | None, limit: int) -> TimelinePage:
    """Return at most `limit` events after the cursor."""
    start = None if after is None else _read(after, run_id)
    # Read the run first: all events that led to its state are then visible to the reads below.
    run = get_snapshot(tx, run_id)
    merger = _Merger.read(tx, run, start or Position(), limit=limit)
    page: list[tuple[str, Event]] = []
    for position, event in merger.events(queued=start is None):
        if len(page) == limit:
            return TimelinePage(events=tuple(page), run=run, ended=False)
        page.append((_write(position, run_id), event))
    return TimelinePage(events=tuple(page), run=run, ended=run.ended and not merger.more)


def timeline(tx: Transaction, run_id: str) -> list[Event]:
    """Return all events of a run, in order: the recorded ones, and those derived from its rows."""
    run = get_snapshot(tx, run_id)
    return merge_events(run, events.of(tx, run_id, limit=ALL), steps.done(tx, run_id, limit=ALL))


def merge_events(run: Snapshot, recorded: Sequence[tuple[int, Event]], finished: Sequence[StepTimes]) -> list[Event]:
    """Merge the recorded events of a run with those derived from its row and its steps, in order."""
    return [event for _, event in _Merger(run, recorded, finished).events(queued=True)]


class _Merger:
    """Merges the events of a run from a position on.

    `cut` says whether there are more recorded events, and more steps, than were read.
    """

    def __init__(
        self,
        run: Snapshot,
        recorded: Sequence[tuple[int, Event]],
        finished: Sequence[StepTimes],
        *,
        position: Position = Position(),
        cut: tuple[bool, bool] = (False, False),
    ) -> None:
        self._run, self._position, self._cut = run, position, cut
        self.more = any(cut)
        # Leave out an attempt that started after we read the run: the next page begins with its start.
        self._recorded = list(takewhile(lambda pair: (pair[1].claim or 0) <= run.claim, recorded))
        self._steps = list(takewhile(lambda step: step.claim <= run.claim, finished))
        self._starts = self._known_starts()

    @classmethod
    def read(cls, tx: Transaction, run: Snapshot, position: Position, *, limit: int) -> _Merger:
        recorded = events.of(tx, run.id, after=position.recorded, limit=limit + 1)
        finished = steps.done(tx, run.id, after=(position.claim, position.step - position.begun), limit=limit + 1)
        cut = len(recorded) > limit, len(finished) > limit
        return cls(run, recorded[:limit], finished[:limit], position=position, cut=cut)

    def _known_starts(self) -> dict[int, Event]:
        starts: dict[int, Event] = {}
        for _, event in self._recorded:
            if event.kind in ENDS_AN_ATTEMPT and (start := start_of(event)) is not None:
                starts[event.claim or 0] = start
        run = self._run
        if run.started_at is not None:
            starts.setdefault(run.claim, started(run.id, run.claim, run.holder, run.started_at))
        return {claim: start for claim, start in sorted(starts.items()) if claim > self._position.started}

    def events(self, *, queued: bool) -> Iterator[tuple[Position, Event]]:
        """Yield the events in order, each with the position after it; `queued` includes RUN_QUEUED."""
        run = self._run
        if queued:
            data = {"queue": run.queue}
            yield self._position, Event(run_id=run.id, kind="RUN_QUEUED", data=data, happened_at=run.created_at)
        recorded, step_events = deque(self._recorded), deque(self._step_events())
        while True:
            if (not recorded and self._cut[0]) or (not step_events and self._cut[1]):
                return  # the next event may be one that was not read
            first = self._first(recorded, step_events)
            if start := self._start_before(first, recorded):
                yield self._advance(started=start.claim or 0), start
            elif self._is_over(first, step_events):
                yield self._advance(ended=1), ending(run)
            elif first is None:
                return
            elif recorded and first is recorded[0][1]:
                number, event = recorded.popleft()
                yield self._advance(recorded=number), event
            else:
                step_position, event = step_events.popleft()
                yield self._advance(**step_position), event

    def _advance(self, **changes: int) -> Position:
        self._position = replace(self._position, **changes)
        return self._position

    @staticmethod
    def _first(recorded: Recorded, step_events: StepEvents) -> Event | None:
        """Return the next recorded event or step event: the one with the earlier claim, then the earlier time.

        At the same instant a step event comes first, unless the recorded event is about a step, too.
        """
        if not recorded or not step_events:
            return recorded[0][1] if recorded else step_events[0][1] if step_events else None
        note, step = recorded[0][1], step_events[0][1]
        if note.claim is not None and step.claim is not None and note.claim != step.claim:
            return note if note.claim < step.claim else step
        return note if (_at(note), not note.kind.startswith("STEP_")) <= (_at(step), False) else step

    def _start_before(self, first: Event | None, recorded: Recorded) -> Event | None:
        """Return the RUN_STARTED that comes before `first`: that of its own attempt or of an earlier one."""
        claim, start = next(iter(self._starts.items()), (0, None))
        if start is None:
            return None
        # If not all recorded events were read, an earlier attempt may have a start that is not known yet.
        known = not self._cut[0] or claim == self._position.started + 1
        if not known and not any((event.claim or 0) >= claim for _, event in recorded):
            return None
        if first is None or (_at(start) <= _at(first) if first.claim is None else first.claim >= claim):
            return self._starts.pop(claim)
        return None

    def _is_over(self, first: Event | None, step_events: StepEvents) -> bool:
        """Return whether the run's end comes next. After it, there are only actions of operators."""
        if not self._run.ended or self._position.ended or step_events:
            return False
        return first is None or (first.kind == "OPERATOR_ACTION" and _at(first) > _at(ending(self._run)))

    def _step_events(self) -> Iterator[tuple[dict[str, int], Event]]:
        """Yield the start and the end of each step, each with the position fields that change after it."""
        last = self._position
        for step in self._steps:
            changes = {"claim": step.claim, "step": step.number}
            begun = bool(last.begun) and changes == {"claim": last.claim, "step": last.step}
            for event in step_events(self._run.id, step):
                if event.kind == "STEP_FINISHED":
                    yield changes | {"begun": 0}, event
                elif not begun:
                    yield changes | {"begun": 1}, event


def step_events(run_id: str, step: StepTimes) -> Iterator[Event]:
    """Yield the events that are derived from the row of a step.

    If the step was retried, its row does not contain its start, which was recorded as an event before STEP_RETRIED.
    """

    def event(kind: str, at: datetime, **more: str) -> Event:
        return Event(run_id=run_id, kind=kind, claim=step.claim, data={"step": step.name, **more}, happened_at=at)

    if step.attempts == 1:
        yield event("STEP_STARTED", step.started_at)
    yield event("STEP_FINISHED", step.finished_at, attempts=str(step.attempts))


def _at(event: Event) -> datetime:
    assert event.happened_at is not None
    return event.happened_at


def started(run_id: str, claim: int | None, holder: str | None, at: datetime) -> Event:
    return Event(run_id=run_id, kind="RUN_STARTED", claim=claim, data={"holder": holder}, happened_at=at)


def start_of(event: Event) -> Event | None:
    """Return the start of an attempt from the event that ended it, or None if its data can't be decoded."""
    at = event.data.get("started_at")
    if not isinstance(at, str) or isinstance(parsed := json_text.parse_instant(at), json_text.UnreadableInstant):
        return None
    return started(str(event.run_id), event.claim, event.data.get("holder"), parsed)


def ending(run: Snapshot) -> Event:
    data = {"failure_type": run.failure_type, "error": run.error} if run.failure_type else {}
    kind = f"RUN_{run.state.upper()}"
    return Event(run_id=run.id, kind=kind, claim=run.claim, data=data, happened_at=run.finished_at)


def _write(position: Position, run_id: str) -> str:
    return cursors.write(f"news {run_id}", *(getattr(position, name) for name in Position.__slots__))


def _read(after: str, run_id: str) -> Position:
    parts = cursors.read(after, f"news {run_id}")
    numbers = [part for part in parts if isinstance(part, int)]
    if len(numbers) != len(Position.__slots__):
        raise InvalidArguments("this cursor does not belong to the events of this run")
    return Position(*numbers)
