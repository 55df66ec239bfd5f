"""Gauges: how many runs waited and ran, stored once a minute by the first orchestrator to do it.

While nothing waits and nothing runs, only the first gauge is stored. It stands for all minutes until the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from holdfast.runs.limits.queues import list_queues
from holdfast.statistics.overview import oldest_waiting
from holdfast.store.transaction import Transaction
from holdfast.values.statistics import Gauge

KEPT = timedelta(days=2)


MINUTE = timedelta(minutes=1)


def look(tx: Transaction) -> Gauge | None:
    """Return the gauge of this minute, or None if it need not be stored."""
    queues = list_queues(tx)
    current = Gauge(
        at=tx.now.replace(second=0, microsecond=0),
        waiting=sum(queue.queued for queue in queues),
        running=sum(queue.running for queue in queues),
        oldest=oldest_waiting(tx, queues),
    )
    last = since(tx, tx.now - KEPT, limit=1)
    known = bool(last) and (last[0].at >= current.at or (last[0].quiet and current.quiet))
    return None if known or (not last and current.quiet) else current


def take(tx: Transaction, gauge: Gauge) -> None:
    """Store a gauge, unless its minute has one already."""
    oldest = None if gauge.oldest is None else int(gauge.oldest.total_seconds())
    tx.put("insert_gauge", minute_at=gauge.at, waiting=gauge.waiting, running=gauge.running, oldest=oldest)


def since(tx: Transaction, at: datetime, *, limit: int) -> Sequence[Gauge]:
    """Return the gauges since an instant, newest first."""
    return [
        Gauge(
            at=row["minute_at"],
            waiting=row["waiting"],
            running=row["running"],
            oldest=None if row["oldest"] is None else timedelta(seconds=row["oldest"]),
        )
        for row in tx.all("find_gauges", since=at, limit=limit)
    ]


def forget(tx: Transaction) -> None:
    """Delete gauges past their retention. This runs every hour, so it deletes few at a time."""
    tx.put("delete_old_gauges", before=tx.now - KEPT)
