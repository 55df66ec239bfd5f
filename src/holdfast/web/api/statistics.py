"""/api/statistics: counts, throughput and failures. The cost does not grow with the number of finished runs."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query

from holdfast.values.pages import Page
from holdfast.values.statistics import Counter, FailureGroup, Gauge, JobTotals, Overview, Series
from holdfast.web.api.shapes import Limit, Name
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


def router(site: "Site") -> APIRouter:
    statistics = site.resource("/statistics", tags=["statistics"])
    hf = site.hf

    @statistics.get("/overview", name="holdfast.api.overview", summary="Get current counts and throughput")
    def get_overview(who: Annotated[Who, Depends(site.viewer)]) -> Overview:
        return hf.statistics.overview()

    @statistics.get("/series", name="holdfast.api.series", summary="Get finished runs over time")
    def get_series(
        who: Annotated[Who, Depends(site.viewer)],
        span: Annotated[float, Query(ge=60, le=30 * 86_400, description="How many seconds back.")] = 3600,
        job: Name | None = None,
        queue: Name | None = None,
    ) -> Series:
        """At most 300 points. Runs are counted in the background and appear after about 20 seconds."""
        return hf.statistics.series(timedelta(seconds=span), job=job, queue=queue)

    @statistics.get("/gauges", name="holdfast.api.gauges", summary="Get queued and running runs, minute by minute")
    def list_samples(
        who: Annotated[Who, Depends(site.viewer)],
        span: Annotated[float, Query(ge=60, le=2 * 86_400, description="How many seconds back.")] = 3600,
    ) -> Page[Gauge]:
        """The oldest first. While there are no queued or running runs, one sample stands for all minutes until the
        next."""
        return Page.whole(hf.statistics.gauges(timedelta(seconds=span)))

    @statistics.get(
        "/failures", name="holdfast.api.failures", summary="List the newest 1,000 failures, grouped by error"
    )
    def list_failures(who: Annotated[Who, Depends(site.viewer)], limit: Limit = 20) -> Page[FailureGroup]:
        return Page.whole(hf.statistics.failures(limit=limit))

    @statistics.get("/jobs", name="holdfast.api.job_figures", summary="Count all finished runs by job and queue")
    def list_job_figures(who: Annotated[Who, Depends(site.viewer)]) -> Page[JobTotals]:
        return Page.whole(hf.statistics.jobs())

    @statistics.get("/counters", name="holdfast.api.counters", summary="Get event counters")
    def list_counters(who: Annotated[Who, Depends(site.viewer)]) -> Page[Counter]:
        """Lost leases, takeovers, refused submissions and missed slots."""
        return Page.whole(hf.statistics.counters())

    return statistics
