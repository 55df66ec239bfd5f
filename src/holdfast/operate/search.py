"""Searches: runs by what they are, a page at a time, newest first; and how many there are.

    queued   waits and ready          by the order of submission
    running  leases                   by the order of submission
    ended    outcomes of that state   by the time at which they ended
    (any)    runs, or those of a job or of a parent

Each is read from its own place, so no page goes through history: of one place at most BUDGET runs are looked at, and
a page that had to stop there says where to go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from holdfast.runs.snapshot import find_snapshots
from holdfast.store.transaction import Row, Transaction
from holdfast.support import cursors
from holdfast.support.errors import InvalidArguments
from holdfast.support.ids import Ids
from holdfast.values.filters import ENDED, STATES, Count, Order, RunFilter
from holdfast.values.pages import SearchPage
from holdfast.values.runs import Snapshot

BUDGET = 10_000


FIRST = 250  # looked at before more is, four times as much each time


SLACK = timedelta(hours=1)
"""A run's id is made before its row: by no more than this."""


_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


_AFTER_ALL = "~"


@dataclass(frozen=True, slots=True)
class _Position:
    """The last run that was looked at."""

    at: datetime | None
    run_id: str

    @property
    def time(self) -> datetime | None:
        return self.at or Ids.made_at(self.run_id)


def search_runs(
    tx: Transaction,
    wanted: RunFilter,
    *,
    limit: int,
    after: str | None = None,
    bound: str = "~",
    order: Order = "newest",
) -> SearchPage[Snapshot]:
    """The next runs that match; `after` is the `next` of the page before, `bound` an id that theirs are below.

    In the order of their submission, runs that have ended are looked for among all.
    """
    place = _place(wanted.without_state if order == "submitted" else wanted)
    plain = wanted.plain and (order == "newest" or wanted.state is None)
    position = _Position(_LATEST, _AFTER_ALL) if after is None else _read(after, place)
    found: list[Row] = []
    searched, more = 0, True
    for budget in _budgets(limit if plain else max(limit, FIRST)):
        rows = _look(tx, wanted, place, position, bound=bound, budget=budget, limit=limit - len(found) + 1)
        looked = rows[0]["searched"] if rows else 0
        searched += looked
        matching = [row for row in rows if row["found"]]
        if len(found) + len(matching) > limit:
            found += matching[: limit - len(found)]
            position = _at(found[-1])
            break
        found += matching
        position = _at(rows[-1]) if rows else position
        more = looked == budget
        if not more or len(found) == limit:
            break
    read = {run.id: run for run in find_snapshots(tx, [row["run_id"] for row in found])}
    # What has moved on since the first statement is no longer what was asked for.
    page = tuple(read[row["run_id"]] for row in found if row["run_id"] in read and wanted.fits(read[row["run_id"]]))
    until = position.time if searched else None
    return SearchPage(items=page, next=_write(position, place) if more else None, searched=searched, until=until)


def count_runs(tx: Transaction, wanted: RunFilter, *, bound: str = "~") -> Count:
    """How many match, as far as BUDGET runs of their place tell."""
    start = _Position(_LATEST, _AFTER_ALL)
    rows = _look(tx, wanted, _place(wanted), start, bound=bound, budget=BUDGET + 1, limit=1)
    if not rows:
        return Count(0, False)
    return Count(min(rows[0]["matched"], BUDGET), rows[0]["searched"] > BUDGET)


def count_states(tx: Transaction, wanted: RunFilter) -> Mapping[str, Count]:
    """How many there are in each state, but for the state that the filter names."""
    if wanted.without_state != RunFilter():
        return {state: count_runs(tx, wanted.in_state(state)) for state in STATES}
    row = tx.one("count_states", most=BUDGET + 1)
    assert row is not None
    return {state: Count(min(row[state], BUDGET), row[state] > BUDGET) for state in STATES}


def _budgets(first: int) -> Iterator[int]:
    left = BUDGET
    while left > 0:
        yield min(first, left)
        left -= first
        first *= 4


def _place(wanted: RunFilter) -> str:
    if wanted.parent is not None:
        return "parent"
    if wanted.state in ENDED:
        return "ended"
    return wanted.state or ("runs" if wanted.job is None else "job")


def _look(
    tx: Transaction, wanted: RunFilter, place: str, position: _Position, *, bound: str, budget: int, limit: int
) -> list[Row]:
    since, until = wanted.since or _EARLIEST, wanted.until or _LATEST
    # The id says when a run was submitted, so a span of time is a stretch of the index.
    before = min(bound, _AFTER_ALL if wanted.until is None else Ids.since(_moved(until, SLACK)))
    return tx.all(
        "find_matching",
        place=place,
        state=wanted.state,
        tested=wanted.state if place in ("parent", "runs", "job") else None,
        before_at=position.at or _LATEST,
        before=position.run_id if place == "ended" else min(before, position.run_id),
        below=before,
        since=since,
        after="" if wanted.since is None else Ids.since(_moved(since, -SLACK)),
        until=until,
        job=wanted.job,
        queue=wanted.queue,
        key=wanted.key,
        tag=wanted.tag_pattern,
        parent_id=wanted.parent,
        parts=int(wanted.parts),
        error=wanted.error,
        args=[{"path": path, "parts": parts, "text": text} for path, parts, text in wanted.paths],
        budget=budget,
        limit=limit,
    )


def _moved(at: datetime, by: timedelta) -> datetime:
    try:
        return at + by
    except OverflowError:
        return at


def _at(row: Row) -> _Position:
    return _Position(row["position_at"], row["run_id"])


def _write(position: _Position, place: str) -> str:
    return cursors.write(f"runs {place}", None if position.at is None else position.at.isoformat(), position.run_id)


def _read(after: str, place: str) -> _Position:
    at, run_id = cursors.read(after, f"runs {place}")
    if not isinstance(run_id, str):
        raise InvalidArguments("this is no cursor of such a list")
    return _Position(datetime.fromisoformat(at) if isinstance(at, str) else None, run_id)
