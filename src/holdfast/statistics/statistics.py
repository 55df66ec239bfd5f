"""hf.statistics: overview, throughput, failures and health."""

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
from holdfast.values.statistics import Counter, FailureGroup, Gauge, JobTotals, Metrics, Overview, Series

T = TypeVar("T")

POLLS, LEAST = 5, 5.0
"""A worker is healthy if it polled within this many poll intervals, or this many seconds if that is longer."""


class Statistics:
    """Statistics of one Holdfast. Every method reads a bounded number of rows, however long the history is."""

    def __init__(self, runtime: Runtime, polls: Mapping[str, float]) -> None:
        self._runtime, self._polls = runtime, polls

    def overview(self) -> Overview:
        """Return the queues, the age of the oldest ready run, running runs and capacity, and recent throughput."""
        return self._read(overview.overview)

    def series(self, span: timedelta, *, job: Job[..., Any] | str | None = None, queue: str | None = None) -> Series:
        """Return the runs that ended in the last `span` (up to 30 days), in at most 300 points.

        Runs are counted in the background, about 20 seconds after they end.
        """
        name = None if job is None else job_name(job)
        return self._read(lambda tx: series.of(tx, span, job=name, queue=queue))

    def gauges(self, span: timedelta) -> list[Gauge]:
        """Return how many runs waited and ran in each minute of the last `span` (up to 2 days), oldest first.

        Orchestrators store these gauges. While nothing waits and nothing runs, one gauge stands for all minutes until
        the next.
        """
        kept = max(timedelta(0), min(span, gauges.KEPT))
        most = int(kept / gauges.MINUTE) + 2
        return self._read(lambda tx: list(reversed(gauges.since(tx, tx.now - kept, limit=most))))

    def failures(self, *, limit: int = 20) -> list[FailureGroup]:
        """Return the newest 1,000 failures, grouped by similar errors, largest group first."""
        check_limit(limit)
        return self._read(lambda tx: failures.groups(tx, limit=limit))

    def jobs(self) -> list[JobTotals]:
        """Return the totals of all time for each job and queue."""
        return self._read(overview.jobs)

    def metrics(self) -> Metrics:
        """Return the overview, totals and counters in one read, as /metrics exports them."""
        return self._read(overview.metrics)

    def health(self) -> list[str]:
        """Return why this process is not ready, or an empty list if it is.

        It is not ready if the database does not answer, or if one of its workers has stopped polling.
        """
        try:
            self._runtime.read(rollups.mark)
        except HoldfastError as error:
            return [f"the database does not answer ({error.code})"]
        now, patience = (
            self._runtime.clock.elapsed(),
            max(POLLS * self._runtime.settings.poll_interval.total_seconds(), LEAST),
        )
        return [
            f"worker {name} has not polled for {now - polled:.1f} s"
            for name, polled in sorted(self._polls.items())
            if now - polled > patience
        ]

    def counters(self) -> list[Counter]:
        """Return the counters of lost leases, takeovers, refused submissions and missed slots."""
        return self._read(overview.counted)

    def _read(self, verb: Callable[[Transaction], T]) -> T:
        """Run a read with index scans only, so that it never reads a whole table."""

        def by_index(tx: Transaction) -> T:
            tx.one("read_by_index")
            return verb(tx)

        return self._runtime.read(by_index)
