"""Logs: the log records of a run, by level and text, a page at a time."""

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
    """Return the records after a cursor that have at least this level and contain this text, ignoring case.

    It examines at most BUDGET events of the run.
    """
    if level not in LEVELS:
        raise InvalidArguments(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    if text is not None and not (isinstance(text, str) and len(text) <= MAX_TEXT):
        raise InvalidArguments(f"text must be a string of at most {MAX_TEXT} characters")
    get_snapshot(tx, run_id)
    least, wanted = logging.getLevelNamesMapping()[level], (text or "").casefold()
    position = 0 if after is None else _read(after, run_id)
    records: list[LogRecord] = []
    for _ in range(BUDGET // PAGE):
        page = events.of(tx, run_id, after=position, limit=PAGE)
        for number, event in page:
            position = number
            record = _record(event)
            if record is not None and _rank(record) >= least and wanted in record.message.casefold():
                records.append(record)
                if len(records) == limit:
                    return Logs(records=tuple(records), next=_write(position, run_id), more=True)
        if len(page) < PAGE:
            return Logs(records=tuple(records), next=_write(position, run_id), more=False)
    return Logs(records=tuple(records), next=_write(position, run_id), more=True)


def _record(event: Event) -> LogRecord | None:
    if event.kind != "LOG":
        return None
    fields = {name: str(event.data.get(name) or "") for name in ("level", "logger", "message")}
    return LogRecord(happened_at=event.happened_at, claim=event.claim, **fields)


def _rank(record: LogRecord) -> int:
    """Return the number of a record's level. A level that this process does not know counts as INFO."""
    return logging.getLevelNamesMapping().get(record.level, logging.INFO)


def _write(position: int, run_id: str) -> str:
    return cursors.write(f"logs {run_id}", position)


def _read(after: str, run_id: str) -> int:
    match cursors.read(after, f"logs {run_id}"):
        case (int(position),):
            return position
    raise InvalidArguments("this cursor does not belong to the log of this run")
