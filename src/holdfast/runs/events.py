"""Events: write and read the stored events of runs.

Events that another row implies are not stored. The row in `runs` implies RUN_QUEUED; the lease or the outcome implies
RUN_STARTED and the final event; the row in `steps` implies STEP_STARTED and STEP_FINISHED. There is one exception: if
the first attempt of a step fails, its STEP_STARTED is stored, because the row in `steps` is written later or never.
`operate.timeline` puts all events in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from holdfast.store.transaction import Row, Transaction
from holdfast.support import cursors, json_text
from holdfast.support.errors import InvalidArguments
from holdfast.values.events import KINDS, Event, Events


def record(tx: Transaction, events: Iterable[Event]) -> None:
    rows = [
        {
            "run_id": event.run_id,
            "kind": event.kind,
            "claim": event.claim,
            "data": json_text.compact(event.data),
            "happened_at": event.happened_at or tx.now,
        }
        for event in events
    ]
    if rows:
        tx.put("insert_events", rows=rows)


BUDGET = 10_000


def everywhere(tx: Transaction, *, after: str | None, kinds: Collection[str] | None, limit: int) -> Events:
    """Return the events of all runs after the cursor, reading at most BUDGET rows.

    No event is skipped: while an older transaction may still add events, newer ones are left for a later call.
    """
    start = (0, 0) if after is None else _read(after)
    if kinds is not None and (isinstance(kinds, str) or not set(kinds) <= KINDS.keys()):
        raise InvalidArguments(f"kinds must be a list of event kinds, not {kinds!r}; known: {', '.join(KINDS)}")
    wanted = None if kinds is None else sorted(kinds)
    rows = tx.all(
        "find_all_events",
        tx=start[0],
        after=start[1],
        kinds=wanted,
        budget=limit if kinds is None else BUDGET,
        limit=limit,
    )
    matching = tuple((_write(row["tx"], row["id"]), _event(row)) for row in rows if row["wanted"])
    position = (rows[-1]["tx"], rows[-1]["id"]) if rows else start
    return Events(events=matching, next=_write(*position))


def end(tx: Transaction) -> str:
    """Return the cursor after the newest event."""
    row = tx.one("find_events_end")
    assert row is not None
    return _write(row["tx"], row["id"])


def _write(number: int, event_id: int) -> str:
    return cursors.write("events", number, event_id)


def _read(after: str) -> tuple[int, int]:
    match cursors.read(after, "events"):
        case (int(number), int(event_id)):
            return number, event_id
    raise InvalidArguments("after is not an events cursor; pass the `next` value of an earlier page")


def of(tx: Transaction, run_id: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, Event]]:
    """Return the events of a run with their ids, in the order in which they were written."""
    return [(row["id"], _event(row)) for row in tx.all("find_events", run_id=run_id, after=after, limit=limit)]


def last(tx: Transaction, run_id: str, *, before: int = 2**63 - 1, limit: int) -> list[tuple[int, Event]]:
    """Return the last events of a run with their ids, oldest first."""
    rows = tx.all("find_last_events", run_id=run_id, before=before, limit=limit)
    return [(row["id"], _event(row)) for row in reversed(rows)]


def _event(row: Row) -> Event:
    reading = json_text.Reading(row)
    data = reading.column("data", json_text.mapping, instead=lambda _: {})
    return Event(
        run_id=row["run_id"],
        kind=row["kind"],
        claim=row["claim"],
        data=data if reading.unreadable is None else data | {"unreadable": json_text.marker(reading.unreadable)},
        happened_at=row["happened_at"],
    )
