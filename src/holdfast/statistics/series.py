"""Series: finished runs over time, read from the rollups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from holdfast.statistics import rollups
from holdfast.statistics.overview import BAD, TOTALS, times, total
from holdfast.statistics.rollups import ALL
from holdfast.store.transaction import Transaction
from holdfast.support.errors import InvalidArguments
from holdfast.values.statistics import Count, Point, Series

POINTS = 300
PAIRS = 50
READ = 20_000
LONGEST = max(rollups.KEPT.values())


def of(tx: Transaction, span: timedelta, *, job: str | None, queue: str | None) -> Series:
    """Return the runs that ended in the last `span`, in at most 300 points."""
    if not isinstance(span, timedelta) or not timedelta(minutes=1) <= span <= LONGEST:
        raise InvalidArguments(f"span must be a timedelta from one minute to {LONGEST.days} days, not {span!r}")
    grain = next((one for one in rollups.KEPT if span <= POINTS * timedelta(minutes=one)), max(rollups.KEPT))
    steps = -(-span // (POINTS * timedelta(minutes=grain)))
    step = steps * timedelta(minutes=grain)
    since = rollups.floor(tx.now - span, int(step / timedelta(minutes=1)))
    pairs = [(ALL, ALL)] if job is None and queue is None else _pairs(tx, job, queue)
    found = rollups.series(tx, pairs, grain=grain, since=since, limit=READ)
    points: dict[datetime, dict[str, Count]] = defaultdict(lambda: defaultdict(Count))
    for bucket_at, state, count in found:
        points[since + (bucket_at - since) // step * step][state] += count
    if len(found) == READ:
        points.pop(min(points))  # some of its rollups may not have been read
    return Series(since=since, until=tx.now, step=step, points=tuple(_point(at, points[at]) for at in sorted(points)))


def _pairs(tx: Transaction, job: str | None, queue: str | None) -> list[tuple[str, str]]:
    """Return the matching pairs of job and queue; the busiest ones if there are too many."""
    if job is not None and queue is not None:
        return [(job, queue)]
    runs: dict[tuple[str, str], int] = defaultdict(int)
    for one, its_queue, _, count in rollups.totals(tx, limit=TOTALS):
        if one == job or its_queue == queue:
            runs[one, its_queue] += count.runs
    return sorted(runs, key=lambda pair: (-runs[pair], pair))[:PAIRS]


def _point(at: datetime, states: Mapping[str, Count]) -> Point:
    every = total(states.values())
    failed = sum(states[state].runs for state in BAD if state in states)
    cancelled = states["cancelled"].runs if "cancelled" in states else 0
    return Point(
        at=at,
        runs=every.runs,
        failed=failed,
        cancelled=cancelled,
        waited=times(every.waited),
        ran=times(every.ran),
    )
