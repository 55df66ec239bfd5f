"""Statistics: how it goes, in numbers. Every question reads a bounded number of rows, however much has ended."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from holdfast.runs import workers
from holdfast.runs.limits.queues import list_queues
from holdfast.statistics import rollups
from holdfast.store import counters
from holdfast.store.transaction import Transaction
from holdfast.values.histograms import Histogram
from holdfast.values.queues import Queue
from holdfast.values.statistics import Count, Counter, Figures, JobTotals, Overview, Pace, Times

NEWEST = 2_000  # outcomes from which it is told how it goes just now


RECENT = timedelta(minutes=5)


TOTALS = 5_000


BAD = ("failed", "timed_out")


def overview(tx: Transaction) -> Overview:
    """How it stands and goes now."""
    return Overview(**_overview(tx))


def figures(tx: Transaction) -> Figures:
    """The overview with all totals and counters, for a system that keeps figures itself."""
    return Figures(**_overview(tx), totals=tuple(rollups.totals(tx, limit=TOTALS)), counters=counters.read(tx))


def _overview(tx: Transaction) -> dict[str, Any]:
    found, alive = list_queues(tx), workers.live(tx)
    return {
        "at": tx.now,
        "queues": tuple(found),
        "queued": sum(queue.queued for queue in found),
        "more": any(queue.more for queue in found),
        "oldest_waiting": oldest_waiting(tx, found),
        "running": sum(queue.running for queue in found),
        "capacity": sum(worker.concurrency for worker in alive),
        "workers": len(alive),
        "paused": tuple(queue.name for queue in found if queue.paused_at is not None),
        "pace": pace(tx),
    }


def oldest_waiting(tx: Transaction, queues: Sequence[Queue]) -> timedelta | None:
    """How long the oldest ready run of these queues has been there."""
    since = min((queue.oldest_ready_at for queue in queues if queue.oldest_ready_at is not None), default=None)
    return None if since is None else max(tx.now - since, timedelta(0))


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
