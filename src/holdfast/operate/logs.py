"""Logs: the log records that a run has made, by level and text, a page at a time."""

from __future__ import annotations

import logging

from holdfast.runs import events
from holdfast.runs.snapshot import get_snapshot
from holdfast.store.transaction import Transaction
from holdfast.support import cursors
from holdfast.support.errors import InvalidArguments
from holdfast.values.events import Event
from holdfast.values.logs import LEVELS, LogRecord, Logs

BUDGET, PAGE = 10_000, 1_000


MAX_TEXT = 1_000


def of(tx: Transaction, run_id: str, *, level: str, text: str | None, after: str | None, limit: int) -> Logs:
    """The records of at least this level that contain this text, in capitals or not, since the cursor.

    At most BUDGET of the run's events are looked at.
    """
    if level not in LEVELS:
        raise InvalidArguments(f"level is one of {', '.join(LEVELS)}, not {level!r}")
    if text is not None and not (isinstance(text, str) and len(text) <= MAX_TEXT):
        raise InvalidArguments(f"text is of at most {MAX_TEXT} characters")
    get_snapshot(tx, run_id)
    least, wanted = logging.getLevelNamesMapping()[level], (text or "").casefold()
    position = 0 if after is None else _read(after, run_id)
    found: list[LogRecord] = []
    for _ in range(BUDGET // PAGE):
        told = events.of(tx, run_id, after=position, limit=PAGE)
        for number, event in told:
            position = number
            record = _record(event)
            if record is not None and _rank(record) >= least and wanted in record.message.casefold():
                found.append(record)
                if len(found) == limit:
                    return Logs(records=tuple(found), next=_write(position, run_id), more=True)
        if len(told) < PAGE:
            return Logs(records=tuple(found), next=_write(position, run_id), more=False)
    return Logs(records=tuple(found), next=_write(position, run_id), more=True)


def _record(event: Event) -> LogRecord | None:
    if event.kind != "LOG":
        return None
    said = {name: str(event.data.get(name) or "") for name in ("level", "logger", "message")}
    return LogRecord(happened_at=event.happened_at, attempt=event.attempt, **said)


def _rank(record: LogRecord) -> int:
    """A level of the user's own counts as INFO."""
    return logging.getLevelNamesMapping().get(record.level, logging.INFO)


def _write(position: int, run_id: str) -> str:
    return cursors.write(f"logs {run_id}", position)


def _read(after: str, run_id: str) -> int:
    match cursors.read(after, f"logs {run_id}"):
        case (int(position),):
            return position
    raise InvalidArguments("this is no cursor of this run's log")
