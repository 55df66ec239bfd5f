"""Audit: records operator actions, each in the transaction that performs the action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.runs import events
from holdfast.runs.submission import Submission
from holdfast.store.transaction import Row, Transaction
from holdfast.support import cursors, json_text
from holdfast.support.errors import InvalidArguments, Unreadable
from holdfast.support.validation import is_name
from holdfast.values.audit import MAX_BY, MAX_TEXT, AuditEntry
from holdfast.values.events import Event

KIND = "OPERATOR_ACTION"


def check(by: object) -> None:
    """Raise InvalidArguments unless `by` is None or a valid operator name."""
    if by is not None and not is_name(by, max_length=MAX_BY):
        raise InvalidArguments(f"by must be text of 1 to {MAX_BY} characters, without NUL or lone surrogates")


def record(tx: Transaction, by: str | None, action: str, *, run_id: str | None = None, **details: Any) -> None:
    """Record an operator action of this transaction; without `by`, record nothing.

    With `run_id`, the run stays locked until the transaction ends, so that its events are numbered in commit order.
    """
    check(by)
    if by is None:
        return
    if run_id is not None:
        _lock_run(tx, run_id)
    shown = {
        name: value[:MAX_TEXT] if isinstance(value, str) else value
        for name, value in details.items()
        if value is not None
    }
    data = {"by": by, "action": action, "details": shown}
    events.record(tx, [Event(run_id=run_id, kind=KIND, data=data)])


def record_submissions(tx: Transaction, submissions: Sequence[Submission]) -> None:
    """Record the operators who submitted these new runs. The runs need no lock: no other transaction sees them yet."""
    events.record(
        tx,
        [
            Event(run_id=s.run_id, kind=KIND, data={"by": s.by, "action": "submit", "details": {"job": s.job}})
            for s in submissions
            if s.by is not None
        ],
    )


def listed(tx: Transaction, *, limit: int, before: str | None) -> list[AuditEntry]:
    """Return the audit entries before the cursor `before`, newest first."""
    last = 2**63 - 1 if before is None else cursors.read(before, "audit")[0]
    return [_entry(row) for row in tx.all("find_audit_entries", before=last, limit=limit)]


def _entry(row: Row) -> AuditEntry:
    reading = json_text.Reading(row)
    data = reading.column("data", _parse, instead=lambda _: {"by": "", "action": "unreadable", "details": {}})
    if reading.unreadable is not None:
        data["details"] = data["details"] | {"unreadable": json_text.marker(reading.unreadable)}
    return AuditEntry(
        **data,
        run_id=row["run_id"],
        happened_at=row["happened_at"],
        cursor=cursors.write("audit", row["id"]),
    )


def _parse(text: str) -> dict[str, Any]:
    match json_text.mapping(text):
        case {"by": str(by), "action": str(action), "details": dict(details)}:
            return {"by": by, "action": action, "details": details}
    raise Unreadable(f"not an audit entry: {text[:60]}")


def _lock_run(tx: Transaction, run_id: str) -> None:
    """Lock the run's row in its current table. The run may move to another table meanwhile, so try several times."""
    for _ in range(100):
        if tx.all("lock_run", run_id=run_id):
            return
