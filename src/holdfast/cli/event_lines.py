"""Telling: events as a person reads them, coloured by what kind they are and how grave."""

from __future__ import annotations

import json
from typing import Any

from rich.text import Text

from holdfast.cli import screen
from holdfast.support.text import plain
from holdfast.values.events import Event
from holdfast.values.runs import last_line

_KINDS = {
    "RUN_RETRIED": "yellow",
    "RUN_PUT_OFF": "yellow",
    "RUN_WAITS": "yellow",
    "RUN_HANDED_BACK": "yellow",
    "RUN_TAKEN_OVER": "red",
    "RUN_STARTED": "cyan",
    "CANCEL_REQUESTED": "magenta",
    "LOOP_BLOCKED": "red",
    "STEP_STARTED": "blue",
    "STEP_FINISHED": "blue",
    "STEP_RETRIED": "yellow",
    "STEP_FORGOTTEN": "yellow",
    "PROGRESS": "cyan",
    "OPERATED": "magenta",
    "SCHEDULER_CONTENTION": "yellow",
    "SLOTS_PASSED": "yellow",
}
_LEVELS = {"DEBUG": "dim", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red"}


def line(event: Event) -> Text:
    """One event: when, what, in which attempt, and what there is to say of it."""
    style = _style(event)
    at = event.happened_at.strftime("%H:%M:%S.%f")[:-3] if event.happened_at else "?"
    told = Text(f"  {at}  ")
    told.append(f"{event.kind:<17}", style=style)
    # What ends without a start has no attempt.
    told.append(f" {f'attempt {event.attempt}' if event.attempt else '':<11}", style="dim")
    told.append(plain(_words(event)), style=style if event.kind == "LOG" else "")
    told.rstrip()
    return told


def _style(event: Event) -> str:
    if event.kind == "LOG":
        return _LEVELS.get(str(event.data.get("level")).upper(), "")
    return _KINDS.get(event.kind) or screen.STYLES.get(event.kind.removeprefix("RUN_").lower(), "")


def _words(event: Event) -> str:
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
        data["error"] = last_line(data["error"])
    return ", ".join(f"{name}: {compact(value)}" for name, value in data.items() if value not in (None, ""))


def compact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
