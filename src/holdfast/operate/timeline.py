"""Timeline: all events of one run, at once (`story`) or a page at a time with cursors (`news`).

    queued     the run's row
    starts     by attempt: from the lease, the outcome, or the record that ended the attempt
    steps      by attempt and number: they are written under the run's fence, one after the other
    recorded   by number: whoever writes one holds the run, so numbers are in the order of commits
    the end    when all else has been told

They are merged by time, but never out of order within one of these. A cursor holds how far each of them has been told,
so a reader who continues from any cursor misses no event and gets none twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import TypeAlias

from holdfast.runs import events, steps
from holdfast.runs.snapshot import get_snapshot
from holdfast.store.transaction import Transaction
from holdfast.support import cursors, json_text
from holdfast.support.errors import InvalidArguments
from holdfast.values.events import ENDS_AN_ATTEMPT, Event, News, Signs
from holdfast.values.runs import Snapshot, StepTimes

ALL = 2**31 - 1


Recorded: TypeAlias = deque[tuple[int, Event]]


Halves: TypeAlias = deque[tuple[dict[str, int], Event]]


@dataclass(frozen=True, slots=True)
class Told:
    """How much of each has been told; of a step, whether its end was, or only that it began."""

    recorded: int = 0
    started: int = 0
    attempt: int = 0
    step: int = 0
    begun: int = 0
    ended: int = 0


def news(tx: Transaction, run_id: str, *, after: str | None, limit: int) -> News:
    """What has happened since the cursor, at most `limit` of it."""
    told = None if after is None else _read(after, run_id)
    # The run first: what was written before it came to stand like that is seen by what is read later.
    run = get_snapshot(tx, run_id)
    story = _Story.read(tx, run, told or Told(), limit=limit)
    found: list[tuple[str, Event]] = []
    for position, event in story.tell(queued=told is None):
        if len(found) == limit:
            return News(events=tuple(found), run=run, ended=False)
        found.append((_write(position, run_id), event))
    return News(events=tuple(found), run=run, ended=run.ended and not story.more)


def story(tx: Transaction, run_id: str) -> list[Event]:
    """Everything that happened to a run, in order: what was recorded, and what the rows themselves prove."""
    run = get_snapshot(tx, run_id)
    return merge_events(run, events.of(tx, run_id, limit=ALL), steps.done(tx, run_id, limit=ALL))


def merge_events(run: Snapshot, recorded: Sequence[tuple[int, Event]], finished: Sequence[StepTimes]) -> list[Event]:
    """The events that a run, its recorded events and its steps prove, in the order of `story`."""
    return [event for _, event in _Story(run, recorded, finished).tell(queued=True)]


def marks(tx: Transaction, run_ids: Sequence[str]) -> Mapping[str, str]:
    """For each of these runs that there is a short text, another one whenever there may be news of it."""
    rows = tx.all("find_marks", ids=list(dict.fromkeys(run_ids))) if run_ids else []
    return {row["id"]: f"{row['place']} {row['attempt']} {row['event']} {row['step']}" for row in rows}


def signs(tx: Transaction) -> Signs:
    """What tells whether anything has changed, without saying what."""
    row = tx.one("find_signs")
    assert row is not None
    workers = f"{row.pop('workers')} {row.pop('seen_at')}"
    return Signs(runs=" ".join(str(value) for value in row.values()), workers=workers)


class _Story:
    """What is left to tell of a run; `cut` says whether there is more recorded, and more steps, than is given."""

    def __init__(
        self,
        run: Snapshot,
        recorded: Sequence[tuple[int, Event]],
        finished: Sequence[StepTimes],
        *,
        told: Told = Told(),
        cut: tuple[bool, bool] = (False, False),
    ) -> None:
        self._run, self._told, self._cut = run, told, cut
        self.more = any(cut)
        # An attempt that began after we read the run is for the next look, which tells its start first.
        self._recorded = list(takewhile(lambda pair: (pair[1].attempt or 0) <= run.attempt, recorded))
        self._steps = list(takewhile(lambda step: step.attempt <= run.attempt, finished))
        self._starts = self._known_starts()

    @classmethod
    def read(cls, tx: Transaction, run: Snapshot, told: Told, *, limit: int) -> _Story:
        recorded = events.of(tx, run.id, after=told.recorded, limit=limit + 1)
        finished = steps.done(tx, run.id, after=(told.attempt, told.step - told.begun), limit=limit + 1)
        cut = len(recorded) > limit, len(finished) > limit
        return cls(run, recorded[:limit], finished[:limit], told=told, cut=cut)

    def _known_starts(self) -> dict[int, Event]:
        starts: dict[int, Event] = {}
        for _, event in self._recorded:
            if event.kind in ENDS_AN_ATTEMPT and (start := start_of(event)) is not None:
                starts[event.attempt or 0] = start
        run = self._run
        if run.started_at is not None:
            starts.setdefault(run.attempt, started(run.id, run.attempt, run.holder, run.started_at))
        return {attempt: start for attempt, start in sorted(starts.items()) if attempt > self._told.started}

    def tell(self, *, queued: bool) -> Iterator[tuple[Told, Event]]:
        run = self._run
        if queued:
            data = {"queue": run.queue}
            yield self._told, Event(run_id=run.id, kind="RUN_QUEUED", data=data, happened_at=run.created_at)
        recorded, halves = deque(self._recorded), deque(self._halves())
        while True:
            if (not recorded and self._cut[0]) or (not halves and self._cut[1]):
                return  # what comes next may lie beyond what was read
            first = self._first(recorded, halves)
            if start := self._start_before(first, recorded):
                yield self._advance(started=start.attempt or 0), start
            elif self._is_over(first, halves):
                yield self._advance(ended=1), ending(run)
            elif first is None:
                return
            elif recorded and first is recorded[0][1]:
                number, event = recorded.popleft()
                yield self._advance(recorded=number), event
            else:
                place, event = halves.popleft()
                yield self._advance(**place), event

    def _advance(self, **told: int) -> Told:
        self._told = replace(self._told, **told)
        return self._told

    @staticmethod
    def _first(recorded: Recorded, halves: Halves) -> Event | None:
        """Of what was recorded and of the steps, what comes first: the earlier attempt, then the earlier time. In one
        instant a step comes before what was recorded, unless that is about a step too."""
        if not recorded or not halves:
            return recorded[0][1] if recorded else halves[0][1] if halves else None
        note, half = recorded[0][1], halves[0][1]
        if note.attempt is not None and half.attempt is not None and note.attempt != half.attempt:
            return note if note.attempt < half.attempt else half
        return note if (_at(note), not note.kind.startswith("STEP_")) <= (_at(half), False) else half

    def _start_before(self, first: Event | None, recorded: Recorded) -> Event | None:
        """The start that is to be told before this: it is earlier, or this is of its attempt."""
        attempt, start = next(iter(self._starts.items()), (0, None))
        if start is None:
            return None
        # Where more is recorded than was read, an earlier attempt may still have a start to be told.
        known = not self._cut[0] or attempt == self._told.started + 1
        if not known and not any((event.attempt or 0) >= attempt for _, event in recorded):
            return None
        if first is None or (_at(start) <= _at(first) if first.attempt is None else first.attempt >= attempt):
            return self._starts.pop(attempt)
        return None

    def _is_over(self, first: Event | None, halves: Halves) -> bool:
        """Whether the end comes before this: nothing of the run itself is left, only what someone did to it later."""
        if not self._run.ended or self._told.ended or halves:
            return False
        return first is None or (first.kind == "OPERATED" and _at(first) > _at(ending(self._run)))

    def _halves(self) -> Iterator[tuple[dict[str, int], Event]]:
        """The beginning and the end of each step, and what has been told after each."""
        told = self._told
        for step in self._steps:
            place = {"attempt": step.attempt, "step": step.number}
            begun = bool(told.begun) and place == {"attempt": told.attempt, "step": told.step}
            for event in halves(self._run.id, step):
                if event.kind == "STEP_FINISHED":
                    yield place | {"begun": 0}, event
                elif not begun:
                    yield place | {"begun": 1}, event


def halves(run_id: str, step: StepTimes) -> Iterator[Event]:
    """The events that the row of a step proves. Of a step that failed at first it does not prove the start: that was
    recorded before its STEP_RETRIED."""

    def half(kind: str, at: datetime, **more: str) -> Event:
        return Event(run_id=run_id, kind=kind, attempt=step.attempt, data={"step": step.name, **more}, happened_at=at)

    if step.tries == 1:
        yield half("STEP_STARTED", step.started_at)
    yield half("STEP_FINISHED", step.finished_at, tries=str(step.tries))


def _at(event: Event) -> datetime:
    assert event.happened_at is not None
    return event.happened_at


def started(run_id: str, attempt: int | None, holder: str | None, at: datetime) -> Event:
    return Event(run_id=run_id, kind="RUN_STARTED", attempt=attempt, data={"holder": holder}, happened_at=at)


def start_of(event: Event) -> Event | None:
    """The start of an attempt, as the event that ended the attempt tells it; None if its data can't be decoded."""
    at = event.data.get("started_at")
    if not isinstance(at, str) or isinstance(parsed := json_text.parse_instant(at), json_text.UnreadableInstant):
        return None
    return started(str(event.run_id), event.attempt, event.data.get("holder"), parsed)


def ending(run: Snapshot) -> Event:
    data = {"failure_type": run.failure_type, "error": run.error} if run.failure_type else {}
    kind = f"RUN_{run.state.upper()}"
    return Event(run_id=run.id, kind=kind, attempt=run.attempt, data=data, happened_at=run.finished_at)


def _write(told: Told, run_id: str) -> str:
    return cursors.write(f"news {run_id}", *(getattr(told, name) for name in Told.__slots__))


def _read(after: str, run_id: str) -> Told:
    parts = cursors.read(after, f"news {run_id}")
    numbers = [part for part in parts if isinstance(part, int)]
    if len(numbers) != len(Told.__slots__):
        raise InvalidArguments("this is no cursor of this run's events")
    return Told(*numbers)
