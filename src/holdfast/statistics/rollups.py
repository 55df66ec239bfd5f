"""Tallies: what ended, counted after the fact, a slice of time after the other.

    outcomes ──[mark, now − lag)──▶ tallies, by the minute, ten minutes and the hour
                                └─▶ totals, since the beginning

Nothing is added to the finish of a run. A slice is counted by whoever moves the mark from where it saw it: any number
may try, one does, and what it writes is committed together with the mark. All that ended in one instant is in one
slice. What waited is timed until its first start (or its end, if it never started), what ran from its last one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from holdfast.statistics import histograms
from holdfast.statistics.histograms import Histogram
from holdfast.store.transaction import Row, Transaction

MARK = "tallies"
LAG = timedelta(seconds=15)
"""An outcome bears the time at which its transaction began; by then it has been committed, or the database can tell."""
MARGIN = timedelta(seconds=1)
"""A transaction's own time may be a little before the one that the database has for its beginning."""
PATIENCE = timedelta(minutes=10)
"""For so long a transaction that stays open is waited for."""
SLICE = 5000
FARTHEST = timedelta(hours=24)
"""What ended longer ago than this when the first tally is made is not counted."""
ALL = "*"
KEPT = {1: timedelta(days=2), 10: timedelta(days=14), 60: timedelta(days=30)}
"""By the grain, in minutes: for how long it is kept."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Group(NamedTuple):
    """What is counted together."""

    grain: int
    job: str
    queue: str
    since_at: datetime
    state: str


@dataclass(frozen=True, slots=True)
class Count:
    """How many ended, and how long they waited and ran."""

    runs: int = 0
    waited: Histogram = field(default_factory=Histogram)
    ran: Histogram = field(default_factory=Histogram)

    def __add__(self, other: Count) -> Count:
        return Count(self.runs + other.runs, self.waited + other.waited, self.ran + other.ran)

    @classmethod
    def of(cls, row: Row) -> Count:
        return cls(row["runs"], Histogram.from_json(row["waited"]), Histogram.from_json(row["ran"]))

    def row(self) -> Row:
        return {"runs": self.runs, "waited": self.waited.to_json(), "ran": self.ran.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What ended from `since` to before `before`, a row for those that went together; `cut` says that more has ended
    since, and can be counted too."""

    since: datetime
    before: datetime
    rows: Sequence[Row]
    cut: bool


def mark(tx: Transaction) -> datetime | None:
    """Up to when everything is counted; None if nothing ever was."""
    row = tx.one("find_mark", name=MARK)
    return None if row is None else row["done_at"]


def begin(tx: Transaction) -> None:
    """Say where counting begins, unless someone has."""
    tx.put("insert_mark", name=MARK, now=tx.now - FARTHEST)


def read(tx: Transaction, since: datetime, *, limit: int = SLICE) -> Slice | None:
    """The next slice: up to `limit` runs, or all of one instant if it has more; None if its time has not come."""
    before = tx.now - LAG
    if since >= before:
        return None
    before = min(before, tx.now - _open_for(tx))
    if since >= before:
        return None
    tx.one("read_by_index")
    rows = tx.all("find_slice", since=since, before=before, limit=limit + 1)
    cut = sum(row["runs"] for row in rows) > limit
    if cut:
        # The last instant may go on beyond what was read: it is for the next slice.
        before = rows[-1]["finished_at"]
        if rows[0]["finished_at"] == before:
            # One instant alone has more: as much as a transaction ended.
            before += timedelta(microseconds=1)
            rows = tx.all("find_slice", since=since, before=before, limit=2**31 - 1)
        rows = [row for row in rows if row["finished_at"] < before]
    return Slice(since=since, before=before, rows=rows, cut=cut)


def write(tx: Transaction, piece: Slice) -> bool:
    """Count a slice, for good; False if someone else has, or something has been added to it since it was read."""
    if not _is_whole(tx, piece) or not tx.run("set_mark", name=MARK, since=piece.since, before=piece.before):
        return False
    counted = count(piece.rows)
    if counted:
        _add_tallies(tx, counted)
        _add_totals(tx, counted)
    return True


def _open_for(tx: Transaction) -> timedelta:
    """How far back something may still be committed, as far as the database can tell."""
    row = tx.one("find_open_for")
    seconds = None if row is None else row["seconds"]
    return timedelta(0) if seconds is None else min(timedelta(seconds=seconds) + MARGIN, PATIENCE)


def _is_whole(tx: Transaction, piece: Slice) -> bool:
    row = tx.one("count_slice", since=piece.since, before=piece.before)
    return row is not None and row["runs"] == sum(each["runs"] for each in piece.rows)


def count(rows: Iterable[Row]) -> dict[Group, Count]:
    """Runs that ended, by the minute."""
    waited: dict[Group, list[tuple[float, int]]] = defaultdict(list)
    ran: dict[Group, list[tuple[float, int]]] = defaultdict(list)
    runs: dict[Group, int] = defaultdict(int)
    for row in rows:
        minute = row["finished_at"].replace(second=0, microsecond=0)
        group = Group(1, row["job"], row["queue"], minute, row["state"])
        runs[group] += row["runs"]
        if (wait := waited_for(row)) is not None:
            waited[group].append((wait, row["runs"]))
        if (run := ran_for(row)) is not None:
            ran[group].append((run, row["runs"]))
    return {
        group: Count(number, histograms.of(waited[group]), histograms.of(ran[group])) for group, number in runs.items()
    }


def waited_for(row: Row) -> float | None:
    """Seconds until a run's first start, or its end if it never started; None where its first start is not known."""
    until = {0: row["finished_at"], 1: row["started_at"]}.get(row["attempt"])
    if until is None:
        return None
    waited: timedelta = until - row["created_at"]
    return waited.total_seconds()


def ran_for(row: Row) -> float | None:
    """Seconds from a run's last start to its end; None if it never started."""
    if row["started_at"] is None:
        return None
    ran: timedelta = row["finished_at"] - row["started_at"]
    return ran.total_seconds()


def series(
    tx: Transaction, pairs: Sequence[tuple[str, str]], *, grain: int, since: datetime, limit: int
) -> list[tuple[datetime, str, Count]]:
    """What was counted of these jobs and queues since then, the newest first: when, in which state, and how much."""
    rows = [{"job": job, "queue": queue} for job, queue in pairs]
    found = tx.all("read_tallies", rows=rows, grain=grain, since=since, before=tx.now, limit=limit) if rows else []
    return [(row["since_at"], row["state"], Count.of(row)) for row in found]


def totals(tx: Transaction, *, limit: int) -> list[tuple[str, str, str, Count]]:
    """Everything since the beginning: job, queue, state, and how much."""
    return [(row["job"], row["queue"], row["state"], Count.of(row)) for row in tx.all("list_totals", limit=limit)]


def forget(tx: Transaction, *, limit: int) -> int:
    """Remove up to so many of each grain that have been kept long enough; how many."""
    return sum(
        tx.run("delete_old_tallies", grain=grain, before=tx.now - kept, limit=limit) for grain, kept in KEPT.items()
    )


def _add_tallies(tx: Transaction, counted: Mapping[Group, Count]) -> None:
    added: dict[Group, Count] = defaultdict(Count)
    for group, number in counted.items():
        for grain in KEPT:
            since_at = floor(group.since_at, grain)
            added[group._replace(grain=grain, since_at=since_at)] += number
            added[Group(grain, ALL, ALL, since_at, group.state)] += number
    keys = [group._asdict() for group in sorted(added)]
    there = {Group(*(row[name] for name in Group._fields)): Count.of(row) for row in tx.all("find_tallies", rows=keys)}
    rows = [(group, group._asdict() | (there.get(group, Count()) + added[group]).row()) for group in sorted(added)]
    if new := [row for group, row in rows if group not in there]:
        tx.put("insert_tallies", rows=new)
    if known := [row for group, row in rows if group in there]:
        tx.put("set_tallies", rows=known)


def _add_totals(tx: Transaction, counted: Mapping[Group, Count]) -> None:
    added: dict[tuple[str, str, str], Count] = defaultdict(Count)
    for group, number in counted.items():
        added[group.job, group.queue, group.state] += number
    keys = [{"job": job, "queue": queue, "state": state} for job, queue, state in sorted(added)]
    there = {(row["job"], row["queue"], row["state"]): Count.of(row) for row in tx.all("find_totals", rows=keys)}
    rows = [(key, _named(key) | (there.get(key, Count()) + added[key]).row()) for key in sorted(added)]
    if new := [row for key, row in rows if key not in there]:
        tx.put("insert_totals", rows=new)
    if known := [row for key, row in rows if key in there]:
        tx.put("set_totals", rows=known)


def _named(key: tuple[str, str, str]) -> Row:
    return dict(zip(("job", "queue", "state"), key, strict=True))


def floor(at: datetime, minutes: int) -> datetime:
    """When the span of so many minutes began in which this lies."""
    span = timedelta(minutes=minutes)
    return at - (at - _EPOCH) % span
