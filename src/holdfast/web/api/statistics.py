"""/api/statistics: how it goes, in numbers. Every answer costs the same, however much has ended."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query

from holdfast.values.pages import Page
from holdfast.values.statistics import Counter, FailureGroup, JobTotals, Overview, Sample, Series
from holdfast.web.api.shapes import Limit, Name
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


def router(site: "Site") -> APIRouter:
    statistics = site.resource("/statistics", tags=["statistics"])
    hf = site.hf

    @statistics.get("/overview", name="holdfast.api.overview", summary="How it stands, and how it goes just now")
    def get_overview(who: Annotated[Who, Depends(site.viewer)]) -> Overview:
        return hf.statistics.overview()

    @statistics.get("/series", name="holdfast.api.series", summary="What ended, point by point")
    def get_series(
        who: Annotated[Who, Depends(site.viewer)],
        span: Annotated[float, Query(ge=60, le=30 * 86_400, description="The last so many seconds.")] = 3600,
        job: Name | None = None,
        queue: Name | None = None,
    ) -> Series:
        """At most 300 points; counted in the background, some 20 seconds behind."""
        return hf.statistics.series(timedelta(seconds=span), job=job, queue=queue)

    @statistics.get("/samples", name="holdfast.api.samples", summary="How much waited and ran, minute by minute")
    def list_samples(
        who: Annotated[Who, Depends(site.viewer)],
        span: Annotated[float, Query(ge=60, le=2 * 86_400, description="The last so many seconds.")] = 3600,
    ) -> Page[Sample]:
        """The oldest first. While nothing waits and nothing runs, one sample stands for all minutes until the next."""
        return Page.whole(hf.statistics.samples(timedelta(seconds=span)))

    @statistics.get("/failures", name="holdfast.api.failures", summary="The newest 1,000 failures, in groups")
    def list_failures(who: Annotated[Who, Depends(site.viewer)], limit: Limit = 20) -> Page[FailureGroup]:
        return Page.whole(hf.statistics.failures(limit=limit))

    @statistics.get("/jobs", name="holdfast.api.job_figures", summary="All that ever ended, by job and queue")
    def list_job_figures(who: Annotated[Who, Depends(site.viewer)]) -> Page[JobTotals]:
        return Page.whole(hf.statistics.jobs())

    @statistics.get("/counters", name="holdfast.api.counters", summary="What no row proves, counted")
    def list_counters(who: Annotated[Who, Depends(site.viewer)]) -> Page[Counter]:
        """Lost leases, takeovers, refusals, missed slots."""
        return Page.whole(hf.statistics.counters())

    return statistics
