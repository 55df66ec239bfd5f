"""hf.statistics: how it goes, in numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from holdfast.jobs.job import Job
from holdfast.runtime import Runtime
from holdfast.statistics import failures, gauges, overview, rollups, series
from holdfast.store.transaction import Transaction
from holdfast.support.errors import HoldfastError
from holdfast.support.validation import check_limit, job_name
from holdfast.values.statistics import Counter, FailureGroup, Figures, JobTotals, Overview, Sample, Series

T = TypeVar("T")

TICKS, LEAST = 5, 5.0
"""A worker has looked for work so many ticks ago at most, or so many seconds where those are shorter."""


class Statistics:
    """What one Holdfast's database says of its work. Every answer costs the same, however much has ended."""

    def __init__(self, runtime: Runtime, polls: Mapping[str, float]) -> None:
        self._runtime, self._polls = runtime, polls

    def overview(self) -> Overview:
        """The queues, the oldest run that is ready, running against capacity, and how it goes just now."""
        return self._read(overview.overview)

    def series(self, span: timedelta, *, job: Job[..., Any] | str | None = None, queue: str | None = None) -> Series:
        """What ended in the last `span` (up to 30 days), point by point, at most 300 of them.

        It is counted in the background, some 20 seconds behind.
        """
        name = None if job is None else job_name(job)
        return self._read(lambda tx: series.of(tx, span, job=name, queue=queue))

    def samples(self, span: timedelta) -> list[Sample]:
        """How much waited and ran in the last `span` (up to 2 days), minute by minute, the oldest first.

        A worker takes them. Where nothing waited and nothing ran, one sample stands for all minutes until the next.
        """
        kept = max(timedelta(0), min(span, gauges.KEPT))
        most = int(kept / gauges.MINUTE) + 2
        return self._read(lambda tx: list(reversed(gauges.since(tx, tx.now - kept, limit=most))))

    def failures(self, *, limit: int = 20) -> list[FailureGroup]:
        """The newest 1,000 failures in groups that look alike, the largest first."""
        check_limit(limit)
        return self._read(lambda tx: failures.groups(tx, limit=limit))

    def jobs(self) -> list[JobTotals]:
        """What has been counted of each job and queue since the beginning."""
        return self._read(overview.jobs)

    def figures(self) -> Figures:
        """The overview, totals and counters in one read: what /metrics tells."""
        return self._read(overview.figures)

    def troubles(self) -> list[str]:
        """Why this process can't do its work, if so: the database does not answer, or a worker of it does not look."""
        try:
            self._runtime.read(rollups.mark)
        except HoldfastError as error:
            return [f"the database does not answer ({error.code})"]
        now, patience = self._runtime.clock.elapsed(), max(TICKS * self._runtime.settings.tick.total_seconds(), LEAST)
        return [
            f"worker {name} has not looked for work for {now - polled:.1f} s"
            for name, polled in sorted(self._polls.items())
            if now - polled > patience
        ]

    def counters(self) -> list[Counter]:
        """Lost leases, takeovers, refusals, missed slots: what no row proves."""
        return self._read(overview.counted)

    def _read(self, verb: Callable[[Transaction], T]) -> T:
        """Run a verb that must never read more than it was asked for."""

        def by_index(tx: Transaction) -> T:
            tx.one("read_by_index")
            return verb(tx)

        return self._runtime.read(by_index)
