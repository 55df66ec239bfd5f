"""/: the overview page."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response

from holdfast.statistics.gauges import MINUTE
from holdfast.values.statistics import FailureGroup, Gauge, Overview, Point, Series
from holdfast.web.auth.authentication import Who
from holdfast.web.dashboard.filter_query import FilterQuery

if TYPE_CHECKING:
    from holdfast.web.site import Site

SPANS = {"15m": timedelta(minutes=15), "1h": timedelta(hours=1), "24h": timedelta(hours=24)}
LABELS = {"15m": "15 min", "1h": "1 hour", "24h": "24 hours"}
Span = Literal["15m", "1h", "24h"]
LAG = timedelta(seconds=25)  # runs that ended this recently may not be counted yet
LEAST = timedelta(minutes=1)  # a rate over a shorter part of the current interval is too noisy to draw
FEW = 8
ALIKE = 4  # characters of an error; a shorter text matches too much


def router(site: "Site") -> APIRouter:
    pages = site.resource()
    hf = site.hf

    @pages.get("/", name="holdfast.overview")
    def overview(request: Request, who: Annotated[Who, Depends(site.viewer)], span: Span = "1h") -> Response:
        now = hf.statistics.overview()
        schedules = [one for one in hf.schedules.list() if one.next_at is not None and one.paused_at is None]
        alive = hf.workers.list()
        fresh = not (now.queued or now.running or now.pace.runs or alive) and not hf.search(limit=1).items
        return site.render(
            request,
            who,
            "overview.html",
            overview=now,
            failures=[(group, address_of(group)) for group in hf.statistics.failures(limit=FEW)],
            workers=alive[:FEW],
            more_workers=max(0, len(alive) - FEW),
            slots=sorted(schedules, key=lambda one: (one.next_at, one.name))[:FEW],
            span=span,
            spans=LABELS,
            fresh=fresh,
        )

    @pages.get("/overview/series", name="holdfast.overview.series")
    def series(who: Annotated[Who, Depends(site.viewer)], span: Span = "1h") -> dict[str, list[float | None] | float]:
        """Return the data of the charts."""
        found = hf.statistics.series(SPANS[span])
        gauges = sampled(hf.statistics.gauges(SPANS[span]), hf.statistics.overview())
        at: list[float | None] = [sample.at.timestamp() for sample in gauges]
        drawn: dict[str, list[float | None] | float] = {
            **lines(found),
            "since": found.since.timestamp(),
            "until": found.until.timestamp(),
            "depth.at": at,
            "depth": [sample.waiting for sample in gauges],
            "running": [sample.running for sample in gauges],
            "oldest.at": at,
            "oldest": [sample.oldest.total_seconds() if sample.oldest else 0.0 for sample in gauges],
        }
        return drawn

    return pages


def sampled(samples: list[Gauge], overview: Overview) -> list[Gauge]:
    """Return the samples and the current values; idle minutes have no samples, so close each gap with a point."""
    last = Gauge(at=overview.at, waiting=overview.queued, running=overview.running, oldest=overview.oldest_waiting)
    drawn: list[Gauge] = []
    for sample in (*samples, last):
        if drawn and drawn[-1].quiet and sample.at - drawn[-1].at > 2 * MINUTE:
            drawn.append(replace(drawn[-1], at=sample.at - MINUTE))
        drawn.append(sample)
    return drawn


def address_of(group: FailureGroup) -> str:
    """Return the query that finds the failures of a group, by job and by the common part of their error."""
    alike = max(re.split(r"#|<id>", group.message), key=len).strip()
    state = "timed_out" if group.failure_type == "TIMED_OUT" else "failed"
    words = {"state": state, "job": group.job} | ({"error": alike[:300]} if len(alike) >= ALIKE else {})
    return FilterQuery(words=words).query()


def lines(series: Series) -> dict[str, list[float | None]]:
    """Return a series as lines of the charts. Where no run ended, counts are 0 and rates and times are None."""
    points = {point.at: point for point in series.points}
    drawn: dict[str, list[float | None]] = {name: [] for name in ("at", "succeeded", "failed", "rate")}
    drawn |= {f"{what}.{which}": [] for what in ("wait", "run") for which in ("p50", "p95", "p99")}
    at = series.since
    while at < series.until:
        over = min(series.step, series.until - LAG - at)
        if over >= min(LEAST, series.step):
            _add(drawn, at.timestamp(), points.get(at), over)
        at += series.step
    return drawn


def _add(drawn: dict[str, list[float | None]], at: float, point: Point | None, over: timedelta) -> None:
    minutes = over.total_seconds() / 60
    good = 0 if point is None else point.runs - point.failed - point.cancelled
    bad = 0 if point is None else point.failed
    drawn["at"].append(at)
    drawn["succeeded"].append(round(good / minutes, 3))
    drawn["failed"].append(round(bad / minutes, 3))
    drawn["rate"].append(good / (good + bad) if good + bad else None)
    for what, times in (("wait", point and point.waited), ("run", point and point.ran)):
        for which in ("p50", "p95", "p99"):
            drawn[f"{what}.{which}"].append(getattr(times, which) if times is not None else None)
