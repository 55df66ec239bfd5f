"""Engine events: parses the JSON lines that the engine prints, and words them for a run's log."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]

WARNINGS = ("row.rejected", "table.skipped", "run.failed")
COUNTS = ("tables", "rows_read", "rows_written", "rows_rejected")
MAX_NUMBER = 1 << 53
MAX_LENGTH = 2_000


def event_of(line: bytes) -> Event | None:
    """Parse a line of the engine's output; None if it is not an event."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def describe(event: Event) -> str:
    """Describe an event in a sentence for the log; an unknown or malformed event is shown as JSON."""
    word = DESCRIPTIONS.get(event["event"])
    try:
        text = word(event) if word is not None else _plain(event)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        text = _plain(event)
    return text.replace("\0", "\\0")[:MAX_LENGTH]


def is_warning(event: Event) -> bool:
    return event["event"] in WARNINGS or (event["event"] == "field.missing" and event.get("required") is True)


def share_of(event: Event) -> tuple[float, str] | None:
    """Return the progress from 0 to 1 with a text, if this is a progress event."""
    share = event.get("share")
    if event["event"] != "progress" or not isinstance(share, int | float) or isinstance(share, bool):
        return None
    rows = _number(event.get("rows_read"))
    return min(1.0, max(0.0, float(share))), "" if rows is None else f"{rows:,} rows read"


def counts_of(event: Event) -> dict[str, float | None]:
    """Return the engine's counts. A count that is not a number, because a user's code forged it, becomes None."""
    counted = {name: _number(event.get(name)) for name in COUNTS}
    seconds = event.get("seconds")
    in_bounds = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < MAX_NUMBER
    return counted | {"seconds": float(seconds) if in_bounds and seconds is not None else None}


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_NUMBER else None


def _plain(event: Event) -> str:
    rest = {name: value for name, value in event.items() if name not in ("event", "sequence", "at")}
    return f"{event['event']}: {json.dumps(rest, ensure_ascii=False)}"


def _started(event: Event) -> str:
    configuration, document = event["configuration"], event["input"]
    return (
        f"engine {event['engine']} starts: {document['name']} ({document['bytes']:,} bytes), "
        f"configuration {configuration['title']} {configuration['version']}"
    )


def _opened(event: Event) -> str:
    details = f" (encoding {event['encoding']}, delimiter {event['delimiter']!r})" if event["kind"] == "csv" else ""
    return f"the document is {event['kind']}{details}; sheets: {', '.join(event['sheets'])}"


def _table_found(event: Event) -> str:
    rows = event.get("header_rows")
    if rows is None:
        header = "no header"
    else:
        header = f"header in row {rows[0]}" if rows[0] == rows[1] else f"header in rows {rows[0]} to {rows[1]}"
    title = f" {event['title']!r}" if event.get("title") else ""
    return (
        f"found table {event['table']}{title} in sheet {event['sheet']}: "
        f"{event['columns']} columns ({event['range']}), {header}"
    )


def _mapped(event: Event) -> str:
    runner_up = event.get("runner_up")
    rival = ""
    if runner_up:
        other = runner_up["field"] if runner_up.get("field") != event["field"] else f"column {runner_up['column']}"
        rival = f"; next best is {other} with {runner_up['score']:.2f}"
    scores = ", ".join(f"{each['detector']} {each['score']:+.2f}" for each in event.get("scores", ()))
    return (
        f"column {event['column']} {_quoted(event['header'])} is mapped to {event['field']}, "
        f"score {event['score']:.2f} ({scores or 'no detector'}){rival}"
    )


def _unmapped(event: Event) -> str:
    best = event.get("best")
    nearest = f"; the nearest field is {best['field']} with {best['score']:.2f}" if best else ""
    return f"column {event['column']} {_quoted(event['header'])} is not mapped{nearest}"


def _missing(event: Event) -> str:
    required = ", which is required" if event["required"] else ""
    return f"table {event['table']} has no column for {event['field']}{required}"


def _rejected(event: Event) -> str:
    where = f"row {event['row']} of {event['sheet']}"
    is_named = not event.get("field") or event["message"].startswith(f"{event['field']}:")
    field = "" if is_named else f"{event['field']}: "
    return f"{where} is rejected: {field}{event['message']} (rejected so far: {event['count']})"


def _table_finished(event: Event) -> str:
    skipped = ", ".join(f"{number} {reason}" for reason, number in event["rows_skipped"].items() if number)
    return (
        f"table {event['table']}: {event['rows_read']:,} rows read, {event['rows_written']:,} written, "
        f"{event['rows_rejected']:,} rejected{f'; rows skipped: {skipped}' if skipped else ''}"
    )


def _finished(event: Event) -> str:
    return (
        f"finished: {event['rows_written']:,} rows written, {event['rows_rejected']:,} "
        f"rejected, in {event['seconds']:.1f} s with {event['peak_memory_bytes'] / 1e6:,.0f} MB"
    )


def _quoted(header: Any) -> str:
    return repr(header) if header else "(no header)"


DESCRIPTIONS: dict[str, Callable[[Event], str]] = {
    "run.started": _started,
    "input.opened": _opened,
    "sheet.skipped": lambda event: f"sheet {event['sheet']} is skipped: {event['reason']}",
    "table.found": _table_found,
    "table.skipped": lambda event: (
        f"table {event['table']} is skipped: {event['mapped']} columns are mapped, {event['required']} are required"
    ),
    "column.mapped": _mapped,
    "column.unmapped": _unmapped,
    "field.missing": _missing,
    "row.rejected": _rejected,
    "progress": lambda event: f"{event['rows_read']:,} rows read, {event['rows_rejected']:,} rejected",
    "table.finished": _table_finished,
    "log": lambda event: f"printed: {event['text']}",
    "run.finished": _finished,
    "run.failed": lambda event: f"{event['message']} ({event['code']})",
}
