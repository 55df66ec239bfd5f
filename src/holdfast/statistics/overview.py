"""Statistics: how it goes, in numbers. Every question reads a bounded number of rows, however much has ended."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta

from holdfast.runs import workers
from holdfast.statistics import rollups
from holdfast.statistics.histograms import Histogram
from holdfast.statistics.rollups import Count
from holdfast.store import counters
from holdfast.store.transaction import Row, Transaction
from holdfast.support.ids import Ids
from holdfast.values.statistics import Counter, Depth, Figures, JobTotals, Overview, Pace, QueueFigures, Times

MOST = 10_000  # runs of a queue and place that are counted; beyond it there are "more"


QUEUES = 500


NEWEST = 2_000  # outcomes from which it is told how it goes just now


RECENT = timedelta(minutes=5)


TOTALS = 5_000


BAD = ("failed", "timed_out")


def overview(tx: Transaction) -> Overview:
    """How it stands and goes now."""
    depths, oldest = depth(tx)
    alive = workers.live(tx)
    return Overview(
        at=tx.now,
        depths=tuple(depths),
        oldest_waiting=max(oldest.values(), default=None),
        oldest=oldest,
        running=sum(one.runs for one in depths if one.place == "leases"),
        capacity=sum(one.concurrency for one in alive),
        workers=len(alive),
        paused=_paused(tx),
        pace=pace(tx),
    )


def figures(tx: Transaction) -> Figures:
    """All of it, for whoever keeps figures himself."""
    depths, oldest = depth(tx)
    alive = workers.live(tx)
    return Figures(
        depths=tuple(depths),
        oldest=oldest,
        running=sum(one.runs for one in depths if one.place == "leases"),
        capacity=sum(one.concurrency for one in alive),
        workers=len(alive),
        paused=_paused(tx),
        totals=tuple(rollups.totals(tx, limit=TOTALS)),
        counters=counters.read(tx),
    )


def depth(tx: Transaction) -> tuple[list[Depth], dict[str, timedelta]]:
    """How much is where, queue by queue; and how old the oldest is that is ready."""
    found: list[Depth] = []
    oldest: dict[str, timedelta] = {}
    for row in tx.all("count_ready", queues=QUEUES, limit=MOST + 1):
        found.append(_depth(row["queue"], "ready", row["runs"]))
        made = [Ids.made_at(one) for one in (row["plain"], row["ranked"]) if one is not None]
        ages = [tx.now - at for at in made if at is not None]
        if ages:
            oldest[row["queue"]] = max(*ages, timedelta(0))
    waiting = tx.all("count_waits", limit=MOST + 1)
    cut = sum(row["runs"] for row in waiting) > MOST
    # Of those that wait the oldest are counted, of whatever queue: beyond them each queue may have more.
    found += [Depth(queue=row["queue"], place="waits", runs=row["runs"], more=cut) for row in waiting]
    found += [
        Depth(queue=row["queue"], place="leases", runs=row["runs"], more=False) for row in tx.all("count_running")
    ]
    return sorted(found, key=lambda one: (one.queue, one.place)), oldest


def pace(tx: Transaction) -> Pace:
    """From what ended in the last minutes, or the newest of it."""
    rows = tx.all("find_latest", since=tx.now - RECENT, limit=NEWEST)
    # Where they were cut off, the oldest instant may not be whole.
    since = rows[-1]["finished_at"] if len(rows) == NEWEST else tx.now - RECENT
    rows = [row for row in rows if row["finished_at"] > since]
    seconds = max((tx.now - since).total_seconds(), 0.001)
    good, bad = (sum(row["state"] in states for row in rows) for states in (("succeeded",), BAD))
    return Pace(
        runs=len(rows),
        since=since,
        per_second=len(rows) / seconds,
        success_rate=good / (good + bad) if good + bad else None,
        waited=_exactly(one for row in rows if (one := rollups.waited_for(row)) is not None),
        ran=_exactly(one for row in rows if (one := rollups.ran_for(row)) is not None),
    )


def jobs(tx: Transaction) -> list[JobTotals]:
    """Every job and queue of which anything has been counted."""
    found: dict[tuple[str, str], dict[str, Count]] = defaultdict(dict)
    for job, queue, state, count in rollups.totals(tx, limit=TOTALS):
        found[job, queue][state] = count
    return [_totals(job, queue, states) for (job, queue), states in sorted(found.items())]


def queues(tx: Transaction) -> list[QueueFigures]:
    """Every queue that a live worker serves, or that has a run, a limit, a pause or a refusal."""
    depths, oldest = depth(tx)
    served = {name for worker in workers.live(tx) for name in worker.queues}
    at = {(one.queue, one.place): one for one in depths}
    said = {row["name"]: row for row in tx.all("list_limits", limit=QUEUES)}
    rejected = {label: value for (name, label), value in counters.read(tx).items() if name == "queue_rejected"}
    nothing: Row = dict.fromkeys(("paused_at", "note", "max_queued", "concurrency"))
    return [
        QueueFigures(
            queue=name,
            waiting=at.get((name, "waits"), Depth(queue=name, place="waits", runs=0, more=False)),
            ready=at.get((name, "ready"), Depth(queue=name, place="ready", runs=0, more=False)),
            running=at[name, "leases"].runs if (name, "leases") in at else 0,
            oldest_waiting=oldest.get(name),
            rejected=rejected.get(name, 0),
            **{field: said.get(name, nothing)[field] for field in nothing},
        )
        for name in sorted({one.queue for one in depths} | served | said.keys() | rejected.keys())
    ]


def counted(tx: Transaction) -> list[Counter]:
    """Every counter, those that were never used at nothing."""
    found = counters.read(tx)
    used = {name for name, _ in found}
    found |= {(name, ""): 0 for name in counters.NAMES if name not in used}
    return [Counter(name=name, label=label, value=value) for (name, label), value in sorted(found.items())]


def times(histogram: Histogram) -> Times:
    """A histogram in five numbers."""
    count = histogram.count
    p50, p95, p99 = (histogram.quantile(fraction) for fraction in (0.5, 0.95, 0.99))
    return Times(count=count, mean=histogram.seconds / count if count else None, p50=p50, p95=p95, p99=p99)


def total(counts: Iterable[Count]) -> Count:
    """All of these together."""
    return sum(counts, start=Count())


def _exactly(durations: Iterable[float]) -> Times:
    """The same of all there is."""
    ordered = sorted(max(one, 0.0) for one in durations)
    if not ordered:
        return times(Histogram())
    p50, p95, p99 = (ordered[max(0, math.ceil(fraction * len(ordered)) - 1)] for fraction in (0.5, 0.95, 0.99))
    return Times(count=len(ordered), mean=sum(ordered) / len(ordered), p50=p50, p95=p95, p99=p99)


def _paused(tx: Transaction) -> tuple[str, ...]:
    return tuple(row["name"] for row in tx.all("list_limits", limit=QUEUES) if row["paused_at"] is not None)


def _totals(job: str, queue: str, states: Mapping[str, Count]) -> JobTotals:
    every = total(states.values())
    each = {name: states[name].runs if name in states else 0 for name in ("succeeded", "failed", "timed_out")}
    cancelled = states["cancelled"].runs if "cancelled" in states else 0
    return JobTotals(
        job=job,
        queue=queue,
        **each,
        cancelled=cancelled,
        waited=times(every.waited),
        ran=times(every.ran),
    )


def _depth(queue: str, place: str, runs: int) -> Depth:
    return Depth(queue=queue, place=place, runs=min(runs, MOST), more=runs > MOST)
