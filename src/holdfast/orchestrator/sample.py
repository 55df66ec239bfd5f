"""Sample: looks once a minute at how much waits and runs, for the charts."""

from __future__ import annotations

from holdfast.orchestrator.periodic import PeriodicTask
from holdfast.statistics import gauges
from holdfast.store.store import Store
from holdfast.support.clock import Clock

SETTLING = 5.0
"""Seconds before the first sample, so that a worker starts its runs first."""


def gauge_task(store: Store, clock: Clock) -> PeriodicTask:
    """One process's share of the samples."""
    return PeriodicTask("samples", gauges.MINUTE, lambda: _sample(store), clock=clock, first_after=SETTLING)


def _sample(store: Store) -> None:
    """Take this minute's sample, if no other process has."""
    sample = store.read(gauges.look)
    if sample is not None:
        store.do(lambda tx: gauges.take(tx, sample))
