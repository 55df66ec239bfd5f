"""The timeline chart of a run: waiting, attempts and steps; for a pipeline, also its stages and segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.operate.run_details import RelatedRun, RunDetails
from holdfast.operate.timeline import merge_events
from holdfast.values.events import Event
from holdfast.values.runs import Snapshot, StepTimes

MOST = 60  # rows that a page draws
_ENDS = {
    "RUN_RETRIED": "failed, then retried",
    "RUN_TAKEN_OVER": "taken over",
    "RUN_RELEASED": "released",
    "RUN_SNOOZED": "snoozed",
    "RUN_WAITING_FOR_CHILDREN": "waiting for its children",
}


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One period of time; `look` is how it is drawn: waiting, attempt, step, or a state."""

    look: str
    start: datetime
    end: datetime
    open: bool = False
    """Whether the period has not ended yet."""
    says: str = ""

    @property
    def took(self) -> timedelta:
        return self.end - self.start


@dataclass(frozen=True, kw_only=True)
class Row:
    """A label and its bars; `level` is the indentation, `run_id` the run that the label links to."""

    label: str
    bars: tuple[Bar, ...]
    level: int = 0
    run_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Rows on one scale from `start` to `end`; `left` counts the rows that are not drawn."""

    start: datetime
    end: datetime
    rows: tuple[Row, ...]
    left: int

    def share(self, at: datetime) -> float:
        """Return the position of a time, in percent of the width."""
        whole = (self.end - self.start).total_seconds()
        return round(min(max(100 * (at - self.start).total_seconds() / whole, 0.0), 100.0), 3) if whole > 0 else 0.0

    def width(self, bar: Bar) -> float:
        """Return the width of a bar in percent, wide enough to be visible."""
        return max(round(self.share(bar.end) - self.share(bar.start), 3), 0.4)

    @property
    def ticks(self) -> tuple[tuple[float, timedelta], ...]:
        """The quarters of the width, each with the time since the start."""
        whole = self.end - self.start
        return tuple((25.0 * quarter, whole * quarter / 4) for quarter in range(5))


def of(details: RunDetails, *, now: datetime) -> Timeline:
    run = details.run
    attempts = list(_attempts(run, merge_events(run, details.recorded, ()), now))
    rows = [Row(label="waiting", bars=tuple(_waits(run, attempts, now)))]
    by_attempt: dict[int, list[StepTimes]] = {}
    for step in details.steps:
        by_attempt.setdefault(step.claim, []).append(step)
    for number, bar in attempts:
        rows.append(Row(label=f"claim {number}", bars=(bar,)))
        rows += [_step(step) for step in by_attempt.pop(number, [])]
    for number, steps in sorted(by_attempt.items()):
        rows.append(Row(label=f"claim {number}", bars=()))
        rows += [_step(step) for step in steps]
    rows += [_part(one, now) for one in sorted(_children(details), key=lambda one: _place(one, details))]
    end = max([run.finished_at or now, *(bar.end for row in rows for bar in row.bars)])
    return Timeline(start=run.created_at, end=end, rows=tuple(rows[:MOST]), left=max(0, len(rows) - MOST))


def _attempts(run: Snapshot, events: Sequence[Event], now: datetime) -> Iterator[tuple[int, Bar]]:
    """Pair each start with the first end of the same claim. The run's last claim ends with the run, or is open."""
    started: dict[int | None, datetime] = {}
    for event in events:
        at = event.happened_at or now
        if event.kind == "RUN_STARTED":
            started[event.claim] = at
        elif event.kind in _ENDS and event.claim in started:
            look = "attempt" if event.kind in ("RUN_WAITING_FOR_CHILDREN", "RUN_RELEASED", "RUN_SNOOZED") else "failed"
            yield event.claim or 0, Bar(look=look, start=started.pop(event.claim), end=at, says=_ENDS[event.kind])
    if (start := started.get(run.claim)) is not None:
        end, is_open = run.finished_at or now, run.finished_at is None
        yield run.claim, Bar(look=run.state, start=start, end=end, open=is_open, says=run.state)


def _waits(run: Snapshot, attempts: Sequence[tuple[int, Bar]], now: datetime) -> Iterator[Bar]:
    """Yield the periods between submission, attempts and end."""
    since = run.created_at
    for number, bar in attempts:
        if bar.start > since:
            yield Bar(look="waiting", start=since, end=bar.start, says=f"until claim {number}")
        since = bar.end
    if run.place in ("waits", "ready"):
        yield Bar(look="waiting", start=since, end=max(now, since), open=True, says="still waiting")
    elif run.finished_at is not None and run.finished_at > since:
        yield Bar(look="waiting", start=since, end=run.finished_at, says="until it ended")


def _step(step: StepTimes) -> Row:
    says = "done" if step.attempts == 1 else f"done at attempt {step.attempts}"
    says += ", then forgotten" if step.forgotten else ""
    bar = Bar(look="step", start=step.started_at, end=step.finished_at, says=says)
    return Row(label=step.name, bars=(bar,), level=1)


def _children(details: RunDetails) -> list[RelatedRun]:
    return [one for one in details.related if one.relation == "child"]


def _place(one: RelatedRun, details: RunDetails) -> tuple[str, int, str]:
    """Return the sort key: stages in their order, each before its segments; children in order of submission."""
    wholes = {child.stage: child.id for child in _children(details) if child.kind == "stage"}
    number = one.segment if one.segment and one.segment.isdecimal() else ""
    return wholes.get(one.stage, one.id) if one.kind else one.id, int(number[:9] or -1), one.segment or ""


def _part(one: RelatedRun, now: datetime) -> Row:
    name = one.stage if one.kind in ("stage", "segment") else one.job
    label = f"{name}[{one.segment}]" if one.segment and one.kind == "segment" else str(name)
    begun = one.started_at or one.finished_at or now
    bars = [Bar(look="waiting", start=one.created_at, end=begun, open=begun is now, says="waiting")]
    if one.started_at is not None:
        end = one.finished_at or now
        bars.append(Bar(look=one.state, start=one.started_at, end=end, open=one.finished_at is None, says=one.state))
    return Row(label=label, bars=tuple(bars), level=1 if one.segment else 0, run_id=one.id)
