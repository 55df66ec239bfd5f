"""Runs as text for people: a table of runs, and everything about one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from holdfast.cli import event_lines, json_output, screen
from holdfast.runs.handle import Run
from holdfast.support.text import duration, plain
from holdfast.values.events import Event
from holdfast.values.pipelines import Progress, note
from holdfast.values.runs import Snapshot, Why

COLUMNS = ("ID", "STATE", "JOB", "CREATED", "TOOK", "ATTEMPT", "QUEUE", "KEY", "NOTE")
FEW = 10
SPARE = ("QUEUE", "ATTEMPT", "KEY", "TOOK", "CREATED", "JOB")


def list_of(runs: Sequence[Snapshot], *, now: datetime, progress: Mapping[str, Progress] | None = None) -> Table:
    """Return a table of runs; `progress` holds the progress of the pipelines among them, by run id."""
    return screen.table(COLUMNS, [_row(run, (progress or {}).get(run.id), now) for run in runs], spare=SPARE)


def submitted(run: Run[Any], *, as_json: bool) -> None:
    """Print the id of a new run, or the whole run as JSON."""
    if as_json:
        screen.document(json_output.run(run.snapshot))
    else:
        screen.show(run.id)


def facts(shown: Snapshot, *, now: datetime, arguments: Any, progress: Progress | None) -> None:
    """Print the fields of a run, with its `arguments` as they were submitted."""
    screen.show(_facts(shown, arguments, progress, now))


def reasons(answer: Why, timeline: Sequence[Event]) -> None:
    """Print the explanation of a run's state, its result or error, and its timeline."""
    shown = answer.run
    screen.show(Text("\nWhy", style="bold"))
    for reason in answer.reasons:
        screen.show(f"  {plain(reason)}")
    for title, text in (("Result", _result(shown)), ("Error", shown.error)):
        if text:
            screen.show(Text(f"\n{title}", style="bold"))
            screen.show("\n".join(f"  {line}" for line in plain(text.rstrip(), lines=True).splitlines()))
    screen.show(Text("\nTimeline", style="bold"))
    for event in timeline:
        screen.show(event_lines.line(event))


def state_of(shown: Snapshot, progress: Progress | None) -> Text:
    """Return the state of a run; a queued pipeline whose stages have started is `under way`."""
    under_way = progress is not None and progress.begun_at is not None and shown.state == "queued"
    return Text("under way", style="cyan") if under_way else screen.state(shown.state)


def _row(shown: Snapshot, progress: Progress | None, now: datetime) -> list[str | Text]:
    return [
        plain(shown.id),
        state_of(shown, progress),
        screen.short(f"{shown.job}[{shown.segment}]" if shown.kind == "segment" else shown.job, 40),
        screen.instant(shown.created_at),
        _took(shown, progress, now),
        f"{shown.attempt} of {shown.policy.max_attempts}" if shown.attempt else "",
        screen.short(shown.queue, 20),
        screen.short(shown.key or "", 30),
        screen.short(note(shown, progress), 60),
    ]


def _facts(shown: Snapshot, arguments: Any, progress: Progress | None, now: datetime) -> Table:
    known = {
        "id": shown.id,
        "job": shown.job,
        "queue": f"{shown.queue}, priority {shown.priority}",
        "key": shown.key,
        "arguments": "" if arguments is None else event_lines.compact(arguments),
        "part of": _part_of(shown),
        "depends on": _depends_on(shown),
        "tags": ", ".join(f"{name}={value}" for name, value in shown.tags.items()),
        "idempotency key": shown.idempotency_key,
        "again of": shown.again_of,
        "submitted": _at(shown.created_at),
        "due": _at(shown.due_at),
        "started": _at(shown.started_at),
        "finished": _at(shown.finished_at),
        "took": _took(shown, progress, now),
        "attempt": f"{shown.attempt} of {shown.policy.max_attempts} (claim {shown.claim})" if shown.claim else "",
        "takeovers": str(shown.takeovers) if shown.takeovers else "",
        "holder": shown.holder,
        "failure type": shown.failure_type,
        "unreadable": shown.unreadable,
    }
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text("state", style="bold"), state_of(shown, progress))
    for name, value in known.items():
        if value:
            table.add_row(Text(name, style="bold"), Text(plain(value)))
    return table


def _part_of(shown: Snapshot) -> str:
    """Return the pipeline and stage that a run belongs to, or the run that submitted it as a child."""
    match shown.kind:
        case "segment":
            return f"{shown.parent_id}, segment {shown.segment} of stage {shown.stage}"
        case "stage":
            return f"{shown.parent_id}, stage {shown.stage}"
    return f"{shown.parent_id}, child {shown.segment}" if shown.parent_id else ""


def _depends_on(shown: Snapshot) -> str:
    """Return the first dependencies of a run. A pipeline has none here, because its stages are shown separately."""
    depends_on = () if shown.kind == "pipeline" else shown.depends_on
    more = [f"and {len(depends_on) - FEW} more"] if len(depends_on) > FEW else []
    return ", ".join([*depends_on[:FEW], *more])


def _took(shown: Snapshot, progress: Progress | None, now: datetime) -> str:
    """Return how long a run has taken; for a pipeline, the time since its first stage started."""
    if shown.kind == "pipeline":
        taken = None if progress is None else progress.took(shown, now=now)
        return "" if taken is None else duration(taken)
    if shown.started_at is None:
        return ""
    return duration((shown.finished_at or now) - shown.started_at)


def _at(value: datetime | None) -> str:
    return f"{screen.instant(value)} UTC" if value is not None else ""


def _result(shown: Snapshot) -> str | None:
    return None if shown.result in (None, "null") else shown.result
