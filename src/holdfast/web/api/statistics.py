"""/api/statistics: how it goes, in numbers. Every answer costs the same, however much has ended."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BeforeValidator, Field

from holdfast.web.api.shapes import Limit, Name, Shape
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


def _seconds(value: object) -> object:
    return value.total_seconds() if isinstance(value, timedelta) else value


Seconds = Annotated[float, BeforeValidator(_seconds)]


class Times(Shape):
    """How long something took, in seconds."""

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


class Depth(Shape):
    """How many runs of a queue stand in a place; `more` says that they were not all counted."""

    queue: str
    place: str
    runs: int
    more: bool


class Pace(Shape):
    """How it goes just now, measured on the `runs` that ended last."""

    runs: int
    since: datetime
    per_second: float
    success_rate: float | None
    waited: Times
    ran: Times


class Overview(Shape):
    at: datetime
    depths: list[Depth]
    oldest_waiting: Seconds | None = Field(description="Age of the oldest run that is ready, in seconds.")
    oldest: dict[str, Seconds] = Field(description="The same by queue.")
    running: int
    capacity: int
    workers: int
    paused: list[str]
    pace: Pace


class Point(Shape):
    """What ended in the span that began at `at`."""

    at: datetime
    runs: int
    failed: int
    cancelled: int
    waited: Times
    ran: Times


class Series(Shape):
    """Points from `since` on, each `step` seconds long; one in which nothing ended is left out."""

    since: datetime
    until: datetime
    step: Seconds
    points: list[Point]


class Sample(Shape):
    """How many runs waited (or were ready) and ran, and how long the oldest had been ready, in seconds."""

    at: datetime
    waiting: int
    running: int
    oldest: Seconds | None


class Samples(Shape):
    samples: list[Sample]


class FailureGroup(Shape):
    """Failures that look alike."""

    job: str
    failure_type: str | None
    gist: str
    runs: int
    first_at: datetime
    last_at: datetime
    example: str = Field(description="The newest of these runs.")


class Failures(Shape):
    groups: list[FailureGroup]


class JobTotals(Shape):
    """All that ever ended of a job in a queue."""

    job: str
    queue: str
    succeeded: int
    failed: int
    timed_out: int
    cancelled: int
    waited: Times
    ran: Times


class JobFigures(Shape):
    jobs: list[JobTotals]


class QueueFigures(Shape):
    """A queue: what waits and runs, its limits, and how often it refused a submission."""

    queue: str
    waiting: Depth
    ready: Depth
    running: int
    oldest_waiting: Seconds | None
    paused_at: datetime | None
    note: str | None
    max_queued: int | None
    concurrency: int | None
    rejected: int


class AllQueueFigures(Shape):
    queues: list[QueueFigures]


class Counter(Shape):
    name: str = Field(examples=["leases_lost"])
    label: str
    value: int


class Counters(Shape):
    counters: list[Counter]


def router(site: "Site") -> APIRouter:
    statistics = site.resource("/statistics", tags=["statistics"])
    hf = site.hf

    @statistics.get("/overview", name="holdfast.api.overview", summary="How it stands, and how it goes just now")
    def get_overview(who: Annotated[Who, Depends(site.viewer)]) -> Overview:
        return Overview.model_validate(hf.statistics.overview())

    @statistics.get("/series", name="holdfast.api.series", summary="What ended, point by point")
    def get_series(
        who: Annotated[Who, Depends(site.viewer)],
        span: Annotated[float, Query(ge=60, le=30 * 86_400, description="The last so many seconds.")] = 3600,
        job: Name | None = None,
        queue: Name | None = None,
    ) -> Series:
        """At most 300 points; counted in the background, some 20 seconds behind."""
        return Series.model_validate(hf.statistics.series(timedelta(seconds=span), job=job, queue=queue))

    @statistics.get("/samples", name="holdfast.api.samples", summary="How much waited and ran, minute by minute")
    def list_samples(
        who: Annotated[Who, Depends(site.viewer)],
        span: Annotated[float, Query(ge=60, le=2 * 86_400, description="The last so many seconds.")] = 3600,
    ) -> Samples:
        """The oldest first. While nothing waits and nothing runs, one sample stands for all minutes until the next."""
        found = hf.statistics.samples(timedelta(seconds=span))
        return Samples(samples=[Sample.model_validate(one) for one in found])

    @statistics.get("/failures", name="holdfast.api.failures", summary="The newest 1,000 failures, in groups")
    def list_failures(who: Annotated[Who, Depends(site.viewer)], limit: Limit = 20) -> Failures:
        return Failures(groups=[FailureGroup.model_validate(one) for one in hf.statistics.failures(limit=limit)])

    @statistics.get("/jobs", name="holdfast.api.job_figures", summary="All that ever ended, by job and queue")
    def list_job_figures(who: Annotated[Who, Depends(site.viewer)]) -> JobFigures:
        return JobFigures(jobs=[JobTotals.model_validate(one) for one in hf.statistics.jobs()])

    @statistics.get("/queues", name="holdfast.api.queue_figures", summary="What each queue holds and refuses")
    def list_queue_figures(who: Annotated[Who, Depends(site.viewer)]) -> AllQueueFigures:
        return AllQueueFigures(queues=[QueueFigures.model_validate(one) for one in hf.statistics.queues()])

    @statistics.get("/counters", name="holdfast.api.counters", summary="What no row proves, counted")
    def list_counters(who: Annotated[Who, Depends(site.viewer)]) -> Counters:
        """Lost leases, takeovers, refusals, missed slots."""
        return Counters(counters=[Counter.model_validate(one) for one in hf.statistics.counters()])

    return statistics
