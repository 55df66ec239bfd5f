"""Overview: queues, workers and recent throughput. It reads a bounded number of rows, however long the history."""

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
from holdfast.values.statistics import Count, Counter, JobTotals, Metrics, Overview, Throughput, Times

NEWEST = 2_000  # how many of the newest outcomes the throughput is computed from


RECENT = timedelta(minutes=5)


TOTALS = 5_000


BAD = ("failed", "timed_out")


def overview(tx: Transaction) -> Overview:
    """Return the current state of the queues and workers, and the recent throughput."""
    return Overview(**_overview(tx))


def metrics(tx: Transaction) -> Metrics:
    """Return the overview with all totals and counters, for a monitoring system."""
    return Metrics(**_overview(tx), totals=tuple(rollups.totals(tx, limit=TOTALS)), counters=counters.read(tx))


def _overview(tx: Transaction) -> dict[str, Any]:
    queues, alive = list_queues(tx), workers.live(tx)
    return {
        "at": tx.now,
        "queues": tuple(queues),
        "queued": sum(queue.queued for queue in queues),
        "more": any(queue.more for queue in queues),
        "oldest_waiting": oldest_waiting(tx, queues),
        "running": sum(queue.running for queue in queues),
        "capacity": sum(worker.concurrency for worker in alive),
        "workers": len(alive),
        "paused": tuple(queue.name for queue in queues if queue.paused_at is not None),
        "pace": pace(tx),
    }


def oldest_waiting(tx: Transaction, queues: Sequence[Queue]) -> timedelta | None:
    """Return the age of the oldest ready run of these queues."""
    since = min((queue.oldest_ready_at for queue in queues if queue.oldest_ready_at is not None), default=None)
    return None if since is None else max(tx.now - since, timedelta(0))


def pace(tx: Transaction) -> Throughput:
    """Return the throughput of the last five minutes, computed from the newest 2,000 outcomes at most."""
    rows = tx.all("find_latest", since=tx.now - RECENT, limit=NEWEST)
    # If the limit was reached, rows of the oldest instant may be missing: leave that instant out.
    since = rows[-1]["finished_at"] if len(rows) == NEWEST else tx.now - RECENT
    rows = [row for row in rows if row["finished_at"] > since]
    seconds = max((tx.now - since).total_seconds(), 0.001)
    good, bad = (sum(row["state"] in states for row in rows) for states in (("succeeded",), BAD))
    return Throughput(
        runs=len(rows),
        since=since,
        per_second=len(rows) / seconds,
        success_rate=good / (good + bad) if good + bad else None,
        waited=_exactly(one for row in rows if (one := rollups.waited_for(row)) is not None),
        ran=_exactly(one for row in rows if (one := rollups.ran_for(row)) is not None),
    )


def jobs(tx: Transaction) -> list[JobTotals]:
    """Return the totals of every job and queue that has finished runs."""
    by_job: dict[tuple[str, str], dict[str, Count]] = defaultdict(dict)
    for job, queue, state, count in rollups.totals(tx, limit=TOTALS):
        by_job[job, queue][state] = count
    return [_totals(job, queue, states) for (job, queue), states in sorted(by_job.items())]


def counted(tx: Transaction) -> list[Counter]:
    """Return every counter; those that were never used are 0."""
    values = counters.read(tx)
    used = {name for name, _ in values}
    values |= {(name, ""): 0 for name in counters.NAMES if name not in used}
    return [Counter(name=name, label=label, value=value) for (name, label), value in sorted(values.items())]


def times(histogram: Histogram) -> Times:
    """Summarise a histogram in five numbers."""
    count = histogram.count
    p50, p95, p99 = (histogram.quantile(fraction) for fraction in (0.5, 0.95, 0.99))
    return Times(count=count, mean=histogram.seconds / count if count else None, p50=p50, p95=p95, p99=p99)


def total(counts: Iterable[Count]) -> Count:
    """Add up these counts."""
    return sum(counts, start=Count())


def _exactly(durations: Iterable[float]) -> Times:
    """Summarise durations exactly, without a histogram."""
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
