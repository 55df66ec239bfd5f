"""Engine events: the JSON lines that the engine prints, and their texts for a run's log."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]

WARNINGS = ("row.rejected", "table.skipped", "run.failed")
COUNTS = ("tables", "rows_read", "rows_written", "rows_rejected")
MOST = 1 << 53
LONGEST = 2_000


def event_of(line: bytes) -> Event | None:
    """What a line says; None if it is none of the engine's."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) and isinstance(told.get("event"), str) else None


def in_words(event: Event) -> str:
    """An event as a person reads it."""
    say = WORDS.get(event["event"])
    try:
        text = say(event) if say is not None else _plain(event)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        text = _plain(event)
    return text.replace("\0", "\\0")[:LONGEST]


def is_warning(event: Event) -> bool:
    return event["event"] in WARNINGS or (event["event"] == "field.missing" and event.get("required") is True)


def share_of(event: Event) -> tuple[float, str] | None:
    """How far the work is, and in words, if this event says so."""
    share = event.get("share")
    if event["event"] != "progress" or not isinstance(share, int | float) or isinstance(share, bool):
        return None
    rows = _number(event.get("rows_read"))
    return min(1.0, max(0.0, float(share))), "" if rows is None else f"{rows:,} rows read"


def counts_of(event: Event) -> dict[str, float | None]:
    """What the engine has counted; what is no number is left away, since a user's code may have written it."""
    counted = {name: _number(event.get(name)) for name in COUNTS}
    seconds = event.get("seconds")
    in_bounds = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < MOST
    return counted | {"seconds": float(seconds) if in_bounds and seconds is not None else None}


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST else None


def _plain(event: Event) -> str:
    rest = {name: value for name, value in event.items() if name not in ("event", "sequence", "at")}
    return f"{event['event']}: {json.dumps(rest, ensure_ascii=False)}"


def _started(event: Event) -> str:
    configuration, given = event["configuration"], event["input"]
    return (
        f"engine {event['engine']} begins: {given['name']} ({given['bytes']:,} bytes) "
        f"by {configuration['title']} {configuration['version']}"
    )


def _opened(event: Event) -> str:
    how = f" in {event['encoding']}, divided by {event['delimiter']!r}" if event["kind"] == "csv" else ""
    return f"it is {event['kind']}{how}; sheets: {', '.join(event['sheets'])}"


def _found(event: Event) -> str:
    rows = event.get("header_rows")
    header = "without a header" if rows is None else f"with its header in row {rows[0]}"
    header += f" to {rows[1]}" if rows is not None and rows[1] != rows[0] else ""
    title = f" {event['title']!r}" if event.get("title") else ""
    return f"table {event['table']}{title} in {event['sheet']}, {event['range']}, {event['columns']} columns, {header}"


def _mapped(event: Event) -> str:
    runner_up = event.get("runner_up")
    rival = ""
    if runner_up:
        what = runner_up["field"] if runner_up.get("field") != event["field"] else f"column {runner_up['column']}"
        rival = f"; next best {what} with {runner_up['score']:.2f}"
    because = ", ".join(f"{each['detector']} {each['score']:+.2f}" for each in event.get("because", ()))
    return (
        f"column {event['column']} {_quoted(event['header'])} is {event['field']}, "
        f"score {event['score']:.2f} ({because or 'no detector'}){rival}"
    )


def _unmapped(event: Event) -> str:
    best = event.get("best")
    nearest = f"; nearest is {best['field']} with {best['score']:.2f}" if best else ""
    return f"column {event['column']} {_quoted(event['header'])} is no field{nearest}"


def _missing(event: Event) -> str:
    return f"no column is {event['field']}{', which is required' if event['required'] else ''} (table {event['table']})"


def _rejected(event: Event) -> str:
    where = f"row {event['row']} of {event['sheet']}"
    named = not event.get("field") or event["message"].startswith(f"{event['field']}:")
    field = "" if named else f"{event['field']}: "
    return f"{where} is rejected: {field}{event['message']} (rejected so far: {event['count']})"


def _table_finished(event: Event) -> str:
    skipped = ", ".join(f"{number} {what}" for what, number in event["rows_skipped"].items() if number)
    return (
        f"table {event['table']}: {event['rows_read']:,} rows read, {event['rows_written']:,} written, "
        f"{event['rows_rejected']:,} rejected{f'; skipped: {skipped}' if skipped else ''}"
    )


def _finished(event: Event) -> str:
    return (
        f"finished: {event['rows_written']:,} rows written, {event['rows_rejected']:,} "
        f"rejected, in {event['seconds']:.1f} s with {event['peak_memory_bytes'] / 1e6:,.0f} MB"
    )


def _quoted(header: Any) -> str:
    return repr(header) if header else "(no header)"


WORDS: dict[str, Callable[[Event], str]] = {
    "run.started": _started,
    "input.opened": _opened,
    "sheet.skipped": lambda event: f"sheet {event['sheet']} is left out: {event['reason']}",
    "table.found": _found,
    "table.skipped": lambda event: (
        f"table {event['table']} is left out: {event['reason']}, {event['mapped']} of {event['needed']}"
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
