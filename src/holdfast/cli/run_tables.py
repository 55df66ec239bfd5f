"""How runs look to a person."""

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

COLUMNS = ("ID", "STATE", "JOB", "CREATED", "TOOK", "TRIES", "QUEUE", "KEY", "NOTE")
FEW = 10
SPARE = ("QUEUE", "TRIES", "KEY", "TOOK", "CREATED", "JOB")


def list_of(runs: Sequence[Snapshot], *, now: datetime, far: Mapping[str, Progress] | None = None) -> Table:
    """Runs in a table; `far` says of the pipelines among them how far they are."""
    return screen.table(COLUMNS, [_row(run, (far or {}).get(run.id), now) for run in runs], spare=SPARE)


def submitted(run: Run[Any], *, as_json: bool) -> None:
    """A new run: its id, or all of it as JSON."""
    if as_json:
        screen.document(json_output.run(run.snapshot))
    else:
        screen.show(run.id)


def facts(shown: Snapshot, *, now: datetime, arguments: Any, far: Progress | None) -> None:
    """What is known of a run; `arguments` as a person gave them."""
    screen.show(_facts(shown, arguments, far, now))


def reasons(answer: Why, story: Sequence[Event]) -> None:
    """Why it is where it is, what it came to, then what happened."""
    shown = answer.run
    screen.show(Text("\nWhy", style="bold"))
    for reason in answer.reasons:
        screen.show(f"  {plain(reason)}")
    for title, text in (("Result", _result(shown)), ("Error", shown.error)):
        if text:
            screen.show(Text(f"\n{title}", style="bold"))
            screen.show("\n".join(f"  {line}" for line in plain(text.rstrip(), lines=True).splitlines()))
    screen.show(Text("\nStory", style="bold"))
    for event in story:
        screen.show(event_lines.line(event))


def state_of(shown: Snapshot, far: Progress | None) -> Text:
    """A pipeline whose stages have begun is under way, though its own run only waits for them."""
    under_way = far is not None and far.begun_at is not None and shown.state == "queued"
    return Text("under way", style="cyan") if under_way else screen.state(shown.state)


def _row(shown: Snapshot, far: Progress | None, now: datetime) -> list[str | Text]:
    return [
        plain(shown.id),
        state_of(shown, far),
        screen.short(f"{shown.job}[{shown.segment}]" if shown.kind == "segment" else shown.job, 40),
        screen.instant(shown.created_at),
        _took(shown, far, now),
        str(shown.tries),
        screen.short(shown.queue, 20),
        screen.short(shown.key or "", 30),
        screen.short(note(shown, far), 60),
    ]


def _facts(shown: Snapshot, arguments: Any, far: Progress | None, now: datetime) -> Table:
    known = {
        "id": shown.id,
        "job": shown.job,
        "queue": f"{shown.queue}, priority {shown.priority}",
        "key": shown.key,
        "arguments": "" if arguments is None else event_lines.compact(arguments),
        "part of": _whole(shown),
        "needed": _needed(shown),
        "tags": ", ".join(f"{name}={value}" for name, value in shown.tags.items()),
        "idempotency key": shown.idempotency_key,
        "repeats": shown.again_of,
        "submitted": _at(shown.created_at),
        "due": _at(shown.due_at),
        "started": _at(shown.started_at),
        "finished": _at(shown.finished_at),
        "took": _took(shown, far, now),
        "attempt": f"{shown.attempt} ({shown.tries} of {shown.policy.max_attempts} tries used)"
        if shown.attempt
        else "",
        "takeovers": str(shown.takeovers) if shown.takeovers else "",
        "holder": shown.holder,
        "failure type": shown.failure_type,
        "unreadable": shown.unreadable,
    }
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text("state", style="bold"), state_of(shown, far))
    for name, value in known.items():
        if value:
            table.add_row(Text(name, style="bold"), Text(plain(value)))
    return table


def _whole(shown: Snapshot) -> str:
    """What it is part of: a pipeline's stage or a segment of it, or the run whose child it is."""
    match shown.kind:
        case "segment":
            return f"{shown.parent_id}, segment {shown.segment} of stage {shown.stage}"
        case "stage":
            return f"{shown.parent_id}, stage {shown.stage}"
    return f"{shown.parent_id}, child {shown.segment}" if shown.parent_id else ""


def _needed(shown: Snapshot) -> str:
    """The first runs that it had to wait for; a pipeline's stages are told of better."""
    needed = () if shown.kind == "pipeline" else shown.needed
    more = [f"and {len(needed) - FEW} more"] if len(needed) > FEW else []
    return ", ".join([*needed[:FEW], *more])


def _took(shown: Snapshot, far: Progress | None, now: datetime) -> str:
    """How long it has run; a pipeline as long as its stages do."""
    if shown.kind == "pipeline":
        taken = None if far is None else far.took(shown, now=now)
        return "" if taken is None else duration(taken)
    if shown.started_at is None:
        return ""
    return duration((shown.finished_at or now) - shown.started_at)


def _at(value: datetime | None) -> str:
    return f"{screen.instant(value)} UTC" if value is not None else ""


def _result(shown: Snapshot) -> str | None:
    return None if shown.result in (None, "null") else shown.result
