"""Events as lines of text, coloured by kind and level."""

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
    "RUN_SNOOZED": "yellow",
    "RUN_WAITING_FOR_CHILDREN": "yellow",
    "RUN_RELEASED": "yellow",
    "RUN_TAKEN_OVER": "red",
    "RUN_STARTED": "cyan",
    "CANCEL_REQUESTED": "magenta",
    "LOOP_BLOCKED": "red",
    "STEP_STARTED": "blue",
    "STEP_FINISHED": "blue",
    "STEP_RETRIED": "yellow",
    "STEP_FORGOTTEN": "yellow",
    "PROGRESS": "cyan",
    "OPERATOR_ACTION": "magenta",
    "DATABASE_BUSY": "yellow",
    "SLOTS_MISSED": "yellow",
}
_LEVELS = {"DEBUG": "dim", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red"}


def line(event: Event) -> Text:
    """Return one event as a line: time, kind, claim and details."""
    style = _style(event)
    at = event.happened_at.strftime("%H:%M:%S.%f")[:-3] if event.happened_at else "?"
    text = Text(f"  {at}  ")
    text.append(f"{event.kind:<17}", style=style)
    # A run that ends before it starts has no claim.
    text.append(f" {f'claim {event.claim}' if event.claim else '':<11}", style="dim")
    text.append(plain(_details(event)), style=style if event.kind == "LOG" else "")
    text.rstrip()
    return text


def _style(event: Event) -> str:
    if event.kind == "LOG":
        return _LEVELS.get(str(event.data.get("level")).upper(), "")
    return _KINDS.get(event.kind) or screen.STYLES.get(event.kind.removeprefix("RUN_").lower(), "")


def _details(event: Event) -> str:
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
