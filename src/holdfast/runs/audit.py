"""Audit: who did what by hand, and when; written with what was done, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.runs import events
from holdfast.runs.submission import Submission
from holdfast.store.transaction import Row, Transaction
from holdfast.support import cursors, json_text
from holdfast.support.errors import InvalidArguments, Unreadable
from holdfast.support.validation import is_name
from holdfast.values.audit import MAX_BY, MAX_TEXT, Operation
from holdfast.values.events import Event

KIND = "OPERATED"


def check(by: object) -> None:
    """Refuse what names no one."""
    if by is not None and not is_name(by, max_length=MAX_BY):
        raise InvalidArguments(f"by is text of 1 to {MAX_BY} characters, none NUL or half a character")


def record(tx: Transaction, by: str | None, action: str, *, run_id: str | None = None, **what: Any) -> None:
    """Write down what was just done in this transaction; nothing if no one says who did it.

    Of a run nothing else is written before this transaction ends: its events are numbered in the order of commits.
    """
    check(by)
    if by is None:
        return
    if run_id is not None:
        _hold(tx, run_id)
    said = {name: value[:MAX_TEXT] if isinstance(value, str) else value for name, value in what.items()}
    data = {"by": by, "action": action, "what": {name: value for name, value in said.items() if value is not None}}
    events.record(tx, [Event(run_id=run_id, kind=KIND, data=data)])


def submitted(tx: Transaction, submissions: Sequence[Submission]) -> None:
    """Write down who asked for these new runs, at once for all of them; no one else knows of them yet."""
    events.record(
        tx,
        [
            Event(run_id=s.run_id, kind=KIND, data={"by": s.by, "action": "submit", "what": {"job": s.job}})
            for s in submissions
            if s.by is not None
        ],
    )


def listed(tx: Transaction, *, limit: int, before: str | None) -> list[Operation]:
    """What operators did, the newest first."""
    last = 2**63 - 1 if before is None else cursors.read(before, "operations")[0]
    return [_operation(row) for row in tx.all("find_operations", before=last, limit=limit)]


def _operation(row: Row) -> Operation:
    reading = json_text.Reading(row)
    told = reading.column("data", _told, instead=lambda _: {"by": "", "action": "unreadable", "what": {}})
    if reading.unreadable is not None:
        told["what"] = told["what"] | {"unreadable": json_text.marker(reading.unreadable)}
    return Operation(
        **told,
        run_id=row["run_id"],
        happened_at=row["happened_at"],
        cursor=cursors.write("operations", row["id"]),
    )


def _told(text: str) -> dict[str, Any]:
    match json_text.mapping(text):
        case {"by": str(by), "action": str(action), "what": dict(what)}:
            return {"by": by, "action": action, "what": what}
    raise Unreadable(f"not an operation: {text[:60]}")


def _hold(tx: Transaction, run_id: str) -> None:
    """A run may move while we reach for it; wherever it stands in the end, it is held still."""
    for _ in range(100):
        if tx.all("lock_run", run_id=run_id):
            return
