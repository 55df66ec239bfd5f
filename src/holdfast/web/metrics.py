"""/metrics: metrics for Prometheus. Each scrape reads them from the database, in bounded reads."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool

from holdfast.values.histograms import BOUNDS, Histogram
from holdfast.values.statistics import Metrics
from holdfast.web.routes import is_open

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.web.site import Site

EDGES = range(0, len(BOUNDS), 4)
"""The bounds that are exported: each is four times the previous one, from 1 ms to 19 hours."""


class Described(NamedTuple):
    """The documentation of a metric."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


METRICS = {
    one.name: one
    for one in (
        Described("holdfast_queue_depth", "gauge", ("queue", "place"), "Waiting, ready and running runs."),
        Described("holdfast_oldest_waiting_seconds", "gauge", ("queue",), "Age of the oldest ready run."),
        Described("holdfast_running", "gauge", (), "Running runs."),
        Described("holdfast_worker_concurrency", "gauge", (), "Runs that all live workers can execute at once."),
        Described("holdfast_workers", "gauge", (), "Live workers."),
        Described("holdfast_queue_paused", "gauge", ("queue",), "1 for each paused queue."),
        Described("holdfast_runs_total", "counter", ("job", "queue", "state"), "Finished runs, by final state."),
        Described("holdfast_wait_seconds", "histogram", ("job", "queue"), "Time from submission to the first start."),
        Described("holdfast_run_seconds", "histogram", ("job", "queue"), "Time from the last start to the end."),
        Described("holdfast_lease_losses_total", "counter", (), "Runs whose lease a worker lost while executing them."),
        Described("holdfast_takeovers_total", "counter", (), "Runs that were taken over from a lost worker."),
        Described("holdfast_startup_takeovers_total", "counter", (), "Takeovers by a worker at its start."),
        Described("holdfast_slots_missed_total", "counter", ("schedule",), "Slots that no live worker could start."),
        Described("holdfast_queue_rejections_total", "counter", ("queue",), "Submissions that a full queue refused."),
    )
}

COUNTERS = {
    "holdfast_lease_losses_total": "lease_lost",
    "holdfast_takeovers_total": "takeover",
    "holdfast_startup_takeovers_total": "startup_takeover",
    "holdfast_slots_missed_total": "slot_missed",
    "holdfast_queue_rejections_total": "queue_rejected",
}


class MetricsCollector(Collector):
    """Reads all metrics at each scrape."""

    def __init__(self, hf: "Holdfast") -> None:
        self._hf = hf

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering the collector does not read the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        figures = self._hf.statistics.metrics()
        yield from _gauges(figures)
        yield from _ended(figures)
        yield from _counters(figures)


def router(site: "Site") -> APIRouter:
    metrics = site.resource(tags=["health"])
    registry = CollectorRegistry()
    registry.register(MetricsCollector(site.hf))

    @metrics.get("/metrics", name="holdfast.metrics", summary="Metrics in the Prometheus text format")
    @is_open
    async def get_metrics(request: Request) -> Response:
        """Needs a token, unless the setting `metrics_public` allows requests from this machine without one."""
        if not (site.hf.settings.metrics_public and is_local(request)):
            await site.viewer(request)
        text = await run_in_threadpool(generate_latest, registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return metrics


def is_local(request: Request) -> bool:
    """Return whether a request comes from this machine, and not through a proxy on it."""
    if any(name in request.headers for name in ("forwarded", "x-forwarded-for", "x-real-ip", "via")):
        return False
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def _gauges(figures: Metrics) -> Iterable[Metric]:
    depth = _gauge("holdfast_queue_depth")
    oldest = _gauge("holdfast_oldest_waiting_seconds")
    for queue in figures.queues:
        for place, runs in (("leases", queue.running), ("ready", queue.ready), ("waits", queue.waiting)):
            if runs:
                depth.add_metric([queue.name, place], runs)
        if queue.oldest_ready_at is not None:
            oldest.add_metric([queue.name], max(0.0, (figures.at - queue.oldest_ready_at).total_seconds()))
    paused = _gauge("holdfast_queue_paused")
    for name in figures.paused:
        paused.add_metric([name], 1)
    single = (
        ("holdfast_running", figures.running),
        ("holdfast_worker_concurrency", figures.capacity),
        ("holdfast_workers", figures.workers),
    )
    for name, value in single:
        family = _gauge(name)
        family.add_metric([], value)
        yield family
    yield from (depth, oldest, paused)


def _ended(figures: Metrics) -> Iterable[Metric]:
    runs = _counter("holdfast_runs_total")
    waited, ran = _histogram("holdfast_wait_seconds"), _histogram("holdfast_run_seconds")
    together: dict[tuple[str, str], tuple[Histogram, Histogram]] = {}
    for job, queue, state, count in figures.totals:
        runs.add_metric([job, queue, state], count.runs)
        before = together.get((job, queue), (Histogram(), Histogram()))
        together[job, queue] = (before[0] + count.waited, before[1] + count.ran)
    for labels, (its_waits, its_runs) in together.items():
        for family, histogram in ((waited, its_waits), (ran, its_runs)):
            family.add_metric(list(labels), _buckets(histogram), histogram.seconds)
    yield from (runs, waited, ran)


def _counters(figures: Metrics) -> Iterable[Metric]:
    for name, counter in COUNTERS.items():
        family = _counter(name)
        found = {label: value for (one, label), value in figures.counters.items() if one == counter}
        if not METRICS[name].labels:
            family.add_metric([], sum(found.values()))
        else:
            for label, value in sorted(found.items()):
                family.add_metric([label], value)
        yield family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    buckets = [(f"{BOUNDS[edge]:.6g}", float(histogram.up_to(edge))) for edge in EDGES]
    return [*buckets, ("+Inf", float(histogram.count))]


def _gauge(name: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, METRICS[name].help, labels=METRICS[name].labels)


def _counter(name: str) -> CounterMetricFamily:
    return CounterMetricFamily(name, METRICS[name].help, labels=METRICS[name].labels)


def _histogram(name: str) -> HistogramMetricFamily:
    return HistogramMetricFamily(name, METRICS[name].help, labels=METRICS[name].labels)
