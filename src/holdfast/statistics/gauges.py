"""Samples: how much waited and ran, once a minute, by whichever orchestrator comes first.

While nothing waits and nothing runs no sample is taken: one that says so stands for all the minutes until the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from holdfast.runs.limits.queues import list_queues
from holdfast.statistics.overview import oldest_waiting
from holdfast.store.transaction import Transaction
from holdfast.values.statistics import Sample

KEPT = timedelta(days=2)


MINUTE = timedelta(minutes=1)


def look(tx: Transaction) -> Sample | None:
    """The sample of this minute, if it is to be taken."""
    queues = list_queues(tx)
    seen = Sample(
        at=tx.now.replace(second=0, microsecond=0),
        waiting=sum(queue.queued for queue in queues),
        running=sum(queue.running for queue in queues),
        oldest=oldest_waiting(tx, queues),
    )
    last = since(tx, tx.now - KEPT, limit=1)
    known = bool(last) and (last[0].at >= seen.at or (last[0].quiet and seen.quiet))
    return None if known or (not last and seen.quiet) else seen


def take(tx: Transaction, sample: Sample) -> None:
    """Keep a sample, unless another one of its minute is kept."""
    oldest = None if sample.oldest is None else int(sample.oldest.total_seconds())
    tx.put("insert_sample", minute_at=sample.at, waiting=sample.waiting, running=sample.running, oldest=oldest)


def since(tx: Transaction, at: datetime, *, limit: int) -> Sequence[Sample]:
    """The samples since then, the newest first."""
    return [
        Sample(
            at=row["minute_at"],
            waiting=row["waiting"],
            running=row["running"],
            oldest=None if row["oldest"] is None else timedelta(seconds=row["oldest"]),
        )
        for row in tx.all("find_samples", since=at, limit=limit)
    ]


def forget(tx: Transaction) -> None:
    """Remove those that have been kept long enough: a handful, as this is done every hour."""
    tx.put("delete_old_samples", before=tx.now - KEPT)
