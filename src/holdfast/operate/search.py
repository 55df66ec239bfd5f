"""Search: find and count the runs that match a filter, a page at a time, newest first.

    state    tables                                order
    queued   waits and ready                       submission
    running  leases                                submission
    ended    outcomes of that state                end
    (any)    runs, of a job or parent if given     submission

Each state is read from its own tables, so a page doesn't scan the history. With a parent, every state is read from the
parent's runs. A page examines at most BUDGET runs; if it stops there, its cursor says where to continue.
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


FIRST = 250  # how many runs the first statement examines; each further one examines four times as many


SLACK = timedelta(hours=1)
"""The longest time between the creation of a run's id and that of its row."""


_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


_AFTER_ALL = "~"


@dataclass(frozen=True, slots=True)
class _Position:
    """The last run that was examined."""

    at: datetime | None
    run_id: str

    @property
    def time(self) -> datetime | None:
        return self.at or Ids.created_at(self.run_id)


def search_runs(
    tx: Transaction,
    wanted: RunFilter,
    *,
    limit: int,
    after: str | None = None,
    bound: str = "~",
    order: Order = "newest",
) -> SearchPage[Snapshot]:
    """Return the next page of matching runs. `after` is the `next` of the previous page; only ids below `bound` match.

    With `order="submitted"`, ended runs are read from the table of all runs instead of the table of outcomes.
    """
    source = _source(wanted.without_state if order == "submitted" else wanted)
    plain = wanted.plain and (order == "newest" or wanted.state is None)
    position = _Position(_LATEST, _AFTER_ALL) if after is None else _read(after, source)
    matches: list[Row] = []
    searched, more = 0, True
    for budget in _budgets(limit if plain else max(limit, FIRST)):
        rows = _examine(tx, wanted, source, position, bound=bound, budget=budget, limit=limit - len(matches) + 1)
        examined = rows[0]["searched"] if rows else 0
        searched += examined
        matching = [row for row in rows if row["found"]]
        if len(matches) + len(matching) > limit:
            matches += matching[: limit - len(matches)]
            position = _at(matches[-1])
            break
        matches += matching
        position = _at(rows[-1]) if rows else position
        more = examined == budget
        if not more or len(matches) == limit:
            break
    runs = {run.id: run for run in find_snapshots(tx, [row["run_id"] for row in matches])}
    # A run may have changed since the statement above: leave it out if it doesn't match any more.
    page = tuple(runs[row["run_id"]] for row in matches if row["run_id"] in runs and wanted.fits(runs[row["run_id"]]))
    until = position.time if searched else None
    return SearchPage(items=page, next=_write(position, source) if more else None, searched=searched, until=until)


def count_runs(tx: Transaction, wanted: RunFilter, *, bound: str = "~") -> Count:
    """Count the matching runs among the newest BUDGET of their state."""
    start = _Position(_LATEST, _AFTER_ALL)
    rows = _examine(tx, wanted, _source(wanted), start, bound=bound, budget=BUDGET + 1, limit=1)
    if not rows:
        return Count(0, False)
    return Count(min(rows[0]["matched"], BUDGET), rows[0]["searched"] > BUDGET)


def count_states(tx: Transaction, wanted: RunFilter) -> Mapping[str, Count]:
    """Count the matching runs in each state. The state of the filter itself is ignored."""
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


def _source(wanted: RunFilter) -> str:
    if wanted.parent is not None:
        return "parent"
    if wanted.state in ENDED:
        return "ended"
    return wanted.state or ("runs" if wanted.job is None else "job")


def _examine(
    tx: Transaction, wanted: RunFilter, source: str, position: _Position, *, bound: str, budget: int, limit: int
) -> list[Row]:
    since, until = wanted.since or _EARLIEST, wanted.until or _LATEST
    # An id begins with the time of the submission, so a time span is a range of ids in the index.
    before = min(bound, _AFTER_ALL if wanted.until is None else Ids.since(_moved(until, SLACK)))
    return tx.all(
        "find_matching",
        source=source,
        state=wanted.state,
        tested=wanted.state if source in ("parent", "runs", "job") else None,
        before_at=position.at or _LATEST,
        before=position.run_id if source == "ended" else min(before, position.run_id),
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


def _write(position: _Position, source: str) -> str:
    return cursors.write(f"runs {source}", None if position.at is None else position.at.isoformat(), position.run_id)


def _read(after: str, source: str) -> _Position:
    at, run_id = cursors.read(after, f"runs {source}")
    if not isinstance(run_id, str):
        raise InvalidArguments("this cursor does not belong to a list with this filter")
    return _Position(datetime.fromisoformat(at) if isinstance(at, str) else None, run_id)
