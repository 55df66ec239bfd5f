"""Rollups: counts of finished runs, written afterwards, one slice of time after another.

    outcomes ──[watermark, now − lag)──▶ rollups by minute, ten minutes, hour and in total

So finishing a run costs nothing extra. Several processes may try to count a slice: the one that moves the watermark has
counted it, and commits the rollups together with the watermark. All runs that ended at the same instant are in one
slice. A run's waiting time lasts until its first start (or its end, if it never started), its running time from its
last start to its end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from holdfast.store.transaction import Row, Transaction
from holdfast.values import histograms
from holdfast.values.statistics import Count

MARK = "rollups"
LAG = timedelta(seconds=15)
"""How long to wait before counting an outcome. Its time is the start of its transaction, which commits later.

After this wait the transaction has been committed, or the database reports it as still open."""
MARGIN = timedelta(seconds=1)
"""A transaction may have read the clock up to this long before the start time that the database reports for it."""
PATIENCE = timedelta(minutes=10)
"""The longest time to wait for a transaction that stays open."""
SLICE = 5000
FARTHEST = timedelta(hours=24)
"""Runs that ended longer than this before the first rollup are not counted."""
ALL = "*"
KEPT = {1: timedelta(days=2), 10: timedelta(days=14), 60: timedelta(days=30)}
"""How long rollups are kept, by their grain in minutes."""
TOTAL = 0
"""The grain of the totals of all time, which are kept forever."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Group(NamedTuple):
    """The key of one rollup: finished runs with the same values are counted together."""

    grain: int
    job: str
    queue: str
    bucket_at: datetime
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The runs that ended at `since` or later, but before `before`; runs with the same times share a row.

    `cut` is true if more runs can be counted now, in the next slice.
    """

    since: datetime
    before: datetime
    rows: Sequence[Row]
    cut: bool


def mark(tx: Transaction) -> datetime | None:
    """Return the time up to which everything is counted, or None if nothing has been counted yet."""
    row = tx.one("find_watermark", name=MARK)
    return None if row is None else row["done_at"]


def begin(tx: Transaction) -> None:
    """Set the time from which runs are counted, unless it is set already."""
    tx.put("insert_watermark", name=MARK, now=tx.now - FARTHEST)


def read(tx: Transaction, since: datetime, *, limit: int = SLICE) -> Slice | None:
    """Read the next slice: up to `limit` runs, or all of one instant if it has more; None if it is too early."""
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
        # There may be more runs of the last instant than were read: leave it to the next slice.
        before = rows[-1]["finished_at"]
        if rows[0]["finished_at"] == before:
            # A single instant has more than `limit` runs, all ended by one transaction: read all of them.
            before += timedelta(microseconds=1)
            rows = tx.all("find_slice", since=since, before=before, limit=2**31 - 1)
        rows = [row for row in rows if row["finished_at"] < before]
    return Slice(since=since, before=before, rows=rows, cut=cut)


def write(tx: Transaction, piece: Slice) -> bool:
    """Count a slice; return False if another process has counted it, or if it has changed since it was read."""
    if not _is_whole(tx, piece) or not tx.run("set_watermark", name=MARK, since=piece.since, before=piece.before):
        return False
    counted = count(piece.rows)
    if counted:
        _add(tx, counted)
    return True


def _open_for(tx: Transaction) -> timedelta:
    """Return the age of the oldest open transaction, as far as the database reports it."""
    row = tx.one("find_open_for")
    seconds = None if row is None else row["seconds"]
    return timedelta(0) if seconds is None else min(timedelta(seconds=seconds) + MARGIN, PATIENCE)


def _is_whole(tx: Transaction, piece: Slice) -> bool:
    row = tx.one("count_slice", since=piece.since, before=piece.before)
    return row is not None and row["runs"] == sum(each["runs"] for each in piece.rows)


def count(rows: Iterable[Row]) -> dict[Group, Count]:
    """Count finished runs by minute, job, queue and state."""
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
    """Return the seconds until a run's first start, or its end if it never started; None if that is not known."""
    until = {0: row["finished_at"], 1: row["started_at"]}.get(row["claim"])
    if until is None:
        return None
    waited: timedelta = until - row["created_at"]
    return waited.total_seconds()


def ran_for(row: Row) -> float | None:
    """Return the seconds from a run's last start to its end, or None if it never started."""
    if row["started_at"] is None:
        return None
    ran: timedelta = row["finished_at"] - row["started_at"]
    return ran.total_seconds()


def series(
    tx: Transaction, pairs: Sequence[tuple[str, str]], *, grain: int, since: datetime, limit: int
) -> list[tuple[datetime, str, Count]]:
    """Return the rollups of these jobs and queues since an instant, newest first: time, state and count."""
    rows = [{"job": job, "queue": queue} for job, queue in pairs]
    found = tx.all("read_rollups", rows=rows, grain=grain, since=since, before=tx.now, limit=limit) if rows else []
    return [(row["bucket_at"], row["state"], Count.of(row)) for row in found]


def totals(tx: Transaction, *, limit: int) -> list[tuple[str, str, str, Count]]:
    """Return the totals of all time: job, queue, state and count."""
    return [(row["job"], row["queue"], row["state"], Count.of(row)) for row in tx.all("list_totals", limit=limit)]


def forget(tx: Transaction, *, limit: int) -> int:
    """Delete up to `limit` rollups of each grain that are past their retention, and return how many."""
    return sum(
        tx.run("delete_old_rollups", grain=grain, before=tx.now - kept, limit=limit) for grain, kept in KEPT.items()
    )


def _add(tx: Transaction, counted: Mapping[Group, Count]) -> None:
    added: dict[Group, Count] = defaultdict(Count)
    for group, number in counted.items():
        for grain in KEPT:
            bucket_at = floor(group.bucket_at, grain)
            added[group._replace(grain=grain, bucket_at=bucket_at)] += number
            added[Group(grain, ALL, ALL, bucket_at, group.state)] += number
        added[group._replace(grain=TOTAL, bucket_at=_EPOCH)] += number
    keys = [group._asdict() for group in sorted(added)]
    there = {Group(*(row[name] for name in Group._fields)): Count.of(row) for row in tx.all("find_rollups", rows=keys)}
    rows = [(group, group._asdict() | (there.get(group, Count()) + added[group]).row()) for group in sorted(added)]
    if new := [row for group, row in rows if group not in there]:
        tx.put("insert_rollups", rows=new)
    if known := [row for group, row in rows if group in there]:
        tx.put("set_rollups", rows=known)


def floor(at: datetime, minutes: int) -> datetime:
    """Round an instant down to a multiple of this many minutes."""
    span = timedelta(minutes=minutes)
    return at - (at - _EPOCH) % span
