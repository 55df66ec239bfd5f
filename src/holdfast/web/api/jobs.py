"""/api/jobs: the jobs that can be submitted, with their arguments."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends
from pydantic import Field
from pydantic.errors import PydanticInvalidForJsonSchema

from holdfast.builds.decorator import BuildJob
from holdfast.jobs.job import Job as Known
from holdfast.pipelines.pipeline import Pipeline
from holdfast.pipelines.stage_jobs import Collector, StageJob
from holdfast.values.pages import Page
from holdfast.web.api.shapes import Name, Policy, Shape
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


class Job(Shape):
    """A job of the server's application."""

    name: str = Field(examples=["app.greet"])
    kind: Literal["job", "build", "pipeline", "stage"] = Field(description="A stage is submitted with its pipeline.")
    doc: str | None = Field(description="The first line of its docstring.")
    queue: str
    priority: int
    key: str | None = Field(description="The template of its key; null if it has none or a function computes it.")
    isolation: str
    scheduled: bool
    arguments: dict[str, Any] = Field(
        description="The JSON Schema of its arguments.",
        examples=[{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}],
    )
    policy: Policy


def router(site: "Site") -> APIRouter:
    jobs = site.resource("/jobs", tags=["jobs"])
    hf = site.hf

    def shape(job: Known[..., Any]) -> Job:
        return Job(
            name=job.name,
            kind=_kind(job),
            doc=None if isinstance(job, Pipeline) else (job.fn.__doc__ or "").strip().partition("\n")[0] or None,
            queue=job.options.queue,
            priority=job.options.priority,
            key=job.options.key if isinstance(job.options.key, str) else None,
            isolation=job.isolation,
            scheduled=job.name in hf.scheduled,
            arguments=_schema(job),
            policy=Policy.of(job.options.policy),
        )

    @jobs.get("", name="holdfast.api.jobs", summary="List the jobs that can be submitted")
    def list_jobs(who: Annotated[Who, Depends(site.viewer)]) -> Page[Job]:
        """The jobs of the server's application, sorted by name, with their policy and the JSON Schema of their
        arguments."""
        return Page.whole(shape(hf.jobs[name]) for name in hf.jobs)

    @jobs.get("/{name:path}", name="holdfast.api.job", summary="Get a job")
    def get_job(name: Name, who: Annotated[Who, Depends(site.viewer)]) -> Job:
        return shape(hf.jobs[name])

    return jobs


def _kind(job: Known[..., Any]) -> Literal["job", "build", "pipeline", "stage"]:
    match job:
        case Pipeline():
            return "pipeline"
        case StageJob() | Collector():
            return "stage"
        case BuildJob():
            return "build"
    return "job"


def _schema(job: Known[..., Any]) -> dict[str, Any]:
    """Return the JSON Schema of a job's arguments. If it can't express one of their types, allow any object."""
    try:
        return job.arguments.json_schema()
    except PydanticInvalidForJsonSchema:
        return {"type": "object"}
