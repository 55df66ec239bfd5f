"""How runs look to a person."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from holdfast.cli import screen
from holdfast.events import Event
from holdfast.reasons import Why
from holdfast.runs import Snapshot

COLUMNS = ("ID", "STATE", "JOB", "CREATED", "TOOK", "TRIES", "QUEUE", "KEY", "NOTE")
SPARE = ("QUEUE", "TRIES", "KEY", "TOOK", "CREATED", "JOB")


def list_of(runs: Sequence[Snapshot], *, now: datetime) -> Table:
    return screen.table(COLUMNS, [_row(run, now) for run in runs], spare=SPARE)


def run(answer: Why, story: Sequence[Event], *, now: datetime) -> None:
    """Facts first, then why it is where it is, then what happened."""
    shown = answer.run
    screen.show(_facts(shown, now))
    screen.show(Text("\nWhy", style="bold"))
    for reason in answer.reasons:
        screen.show(f"  {screen.plain(reason)}")
    for title, text in (("Result", _result(shown)), ("Error", shown.error)):
        if text:
            screen.show(Text(f"\n{title}", style="bold"))
            screen.show("\n".join(f"  {line}" for line in screen.plain(text.rstrip(), lines=True).splitlines()))
    screen.show(Text("\nStory", style="bold"))
    for event in story:
        screen.show(event_line(event))


def event_line(event: Event) -> Text:
    at = event.happened_at.strftime("%H:%M:%S.%f")[:-3] if event.happened_at else "?"
    line = Text(f"  {at}  ")
    line.append(f"{event.kind:<17}", style=_style(event.kind))
    line.append(f" {'' if event.attempt is None else f'attempt {event.attempt}':<11}", style="dim")
    line.append(screen.plain(_told(event)))
    line.rstrip()
    return line


def _row(shown: Snapshot, now: datetime) -> list[str | Text]:
    return [
        screen.plain(shown.id),
        screen.state(shown.state),
        screen.short(shown.job, 40),
        screen.instant(shown.created_at),
        _took(shown, now),
        str(shown.tries),
        screen.short(shown.queue, 20),
        screen.short(shown.key or "", 30),
        screen.short(_note(shown), 60),
    ]


def _note(shown: Snapshot) -> str:
    """The one thing to know about it."""
    if shown.cancel_requested_at is not None and not shown.ended:
        return "asked to stop"
    if shown.failure_type is not None:
        last = (shown.error or "").strip().splitlines()[-1:] or [""]
        return f"{shown.failure_type}: {last[0]}" if last[0] else shown.failure_type
    return shown.because or ""


def _facts(shown: Snapshot, now: datetime) -> Table:
    facts = {
        "id": shown.id,
        "job": shown.job,
        "queue": f"{shown.queue}, priority {shown.priority}",
        "key": shown.key,
        "arguments": _compact(_arguments(shown)),
        "part of": " ".join(part for part in (shown.parent_id, shown.stage, shown.segment) if part),
        "tags": ", ".join(f"{name}={value}" for name, value in shown.tags.items()),
        "idempotency key": shown.idempotency_key,
        "repeats": shown.again_of,
        "submitted": _at(shown.created_at),
        "due": _at(shown.due_at),
        "started": _at(shown.started_at),
        "finished": _at(shown.finished_at),
        "took": _took(shown, now),
        "attempt": f"{shown.attempt} ({shown.tries} of {shown.policy.max_attempts} tries used)"
        if shown.attempt
        else "",
        "takeovers": str(shown.takeovers) if shown.takeovers else "",
        "holder": shown.holder,
        "failure type": shown.failure_type,
    }
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text("state", style="bold"), screen.state(shown.state))
    for name, value in facts.items():
        if value:
            table.add_row(Text(name, style="bold"), Text(screen.plain(value)))
    return table


def _arguments(shown: Snapshot) -> Any:
    """What it was given; a pipeline's plan is for `pipelines show`."""
    return shown.args["arguments"] if shown.kind == "pipeline" else shown.args


def _took(shown: Snapshot, now: datetime) -> str:
    if shown.started_at is None:
        return ""
    return screen.duration((shown.finished_at or now) - shown.started_at)


def _at(value: datetime | None) -> str:
    return f"{screen.instant(value)} UTC" if value is not None else ""


def _result(shown: Snapshot) -> str | None:
    return None if shown.result in (None, "null") else shown.result


def _told(event: Event) -> str:
    """An event's data as a person reads it."""
    data = dict(event.data)
    match event.kind:
        case "PROGRESS":
            total = f" of {data['total']:g}" if isinstance(data.get("total"), int | float) else ""
            return f"{data.get('done')}{total} {data.get('note') or ''}"
        case "LOG":
            return f"{data.get('level')} {data.get('message')}"
        case "RUN_STARTED":
            return f"on {data.get('holder')}"
    for name in ("holder", "started_at") if event.kind.startswith("RUN_") else ():
        data.pop(name, None)
    if isinstance(data.get("error"), str):
        data["error"] = (data["error"].strip().splitlines() or [""])[-1]
    return ", ".join(f"{name}: {_compact(value)}" for name, value in data.items() if value not in (None, ""))


def _compact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _style(kind: str) -> str:
    return screen.STYLES.get(kind.removeprefix("RUN_").lower(), "")
