"""Events: what happened to a run, for a person to read later.

What a row already proves is not written twice: RUN_QUEUED is the row in `runs`, RUN_STARTED and the ending are the
outcome (or the lease), STEP_STARTED and STEP_FINISHED are the row in `steps`. The STEP_STARTED of a step whose first
try fails is written, because its row comes later than its STEP_RETRIED, or never. `story` puts all of it in order.
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
            "attempt": event.attempt,
            "data": json_text.compact(event.data),
            "happened_at": event.happened_at or tx.now,
        }
        for event in events
    ]
    if rows:
        tx.put("insert_events", rows=rows)


BUDGET = 10_000


def everywhere(tx: Transaction, *, after: str | None, kinds: Collection[str] | None, limit: int) -> Events:
    """What was recorded since the cursor, of all runs; at most BUDGET events are looked at.

    None is passed by: what could still be overtaken by a transaction that began earlier is not told yet.
    """
    start = (0, 0) if after is None else _read(after)
    if kinds is not None and (isinstance(kinds, str) or not set(kinds) <= KINDS.keys()):
        raise InvalidArguments(f"kinds are some of {', '.join(KINDS)}; not {kinds!r}")
    wanted = None if kinds is None else sorted(kinds)
    rows = tx.all(
        "find_all_events",
        tx=start[0],
        after=start[1],
        kinds=wanted,
        budget=limit if kinds is None else BUDGET,
        limit=limit,
    )
    told = tuple((_write(row["tx"], row["id"]), _event(row)) for row in rows if row["wanted"])
    position = (rows[-1]["tx"], rows[-1]["id"]) if rows else start
    return Events(events=told, next=_write(*position))


def end(tx: Transaction) -> str:
    """The cursor after which there is only what will be recorded from now on."""
    row = tx.one("find_events_end")
    assert row is not None
    return _write(row["tx"], row["id"])


def _write(number: int, event_id: int) -> str:
    return cursors.write("events", number, event_id)


def _read(after: str) -> tuple[int, int]:
    match cursors.read(after, "events"):
        case (int(number), int(event_id)):
            return number, event_id
    raise InvalidArguments("this is no cursor of events")


def of(tx: Transaction, run_id: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, Event]]:
    """What was recorded of a run, numbered in the order of its writing."""
    return [(row["id"], _event(row)) for row in tx.all("find_events", run_id=run_id, after=after, limit=limit)]


def last(tx: Transaction, run_id: str, *, before: int = 2**63 - 1, limit: int) -> list[tuple[int, Event]]:
    """What was recorded of a run last, in the same order."""
    rows = tx.all("find_last_events", run_id=run_id, before=before, limit=limit)
    return [(row["id"], _event(row)) for row in reversed(rows)]


def _event(row: Row) -> Event:
    reading = json_text.Reading(row)
    data = reading.column("data", json_text.mapping, instead=lambda _: {})
    return Event(
        run_id=row["run_id"],
        kind=row["kind"],
        attempt=row["attempt"],
        data=data if reading.unreadable is None else data | {"unreadable": json_text.marker(reading.unreadable)},
        happened_at=row["happened_at"],
    )
