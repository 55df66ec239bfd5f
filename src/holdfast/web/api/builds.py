"""/api/builds: list, show, invalidate and rebuild builds. Any run that made a build identifies it."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from holdfast.support import json_text
from holdfast.values.builds import Build as Made
from holdfast.values.pages import Page
from holdfast.web.api.shapes import LONG, USUAL, Limit, Name, QueryModel, RequestBody, Run, RunId, Shape, Text
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

BuildState = Literal["queued", "building", "ready", "failed", "cancelled", "stale"]


class Build(Shape):
    """A build and its current state."""

    run_id: str = Field(description="The run that makes the build.")
    job: str
    scope: str
    fingerprint: str
    state: BuildState
    stale_at: datetime | None
    reason: str | None
    created_at: datetime
    holder: str | None
    started_at: datetime | None
    finished_at: datetime | None
    failure_type: str | None
    error: str | None
    result: Any
    waiting: int = Field(description="Number of runs that wait for the build.")
    unreadable: str | None = Field(description="Which stored values can't be decoded, and why.")
    uses: int = Field(description="Runs that used it, among the newest 5,000 runs with dependencies.")
    cut: list[Literal["result", "error"]] = Field(
        description=f"Fields that a list cuts, because they have over {LONG:,} characters. Get the build to read them."
    )

    @classmethod
    def of(cls, made: Made, uses: Mapping[str, int], *, whole: bool = True) -> Self:
        fields = {name: getattr(made, name) for name in Made.__dataclass_fields__ if name in cls.model_fields}
        sizes = {"result": len(made.result or ""), "error": len(made.error or "")}
        cut = [] if whole else [name for name, size in sizes.items() if size > LONG]
        result = None if made.result is None or "result" in cut else json_text.shown(made.result)
        fields |= {
            "uses": uses.get(made.run_id, 0),
            "result": result,
            "cut": cut,
            "error": made.error and (made.error if whole else made.error[-LONG:]),
        }
        return cls.model_validate(fields)


class BuildHistory(Shape):
    build: Build
    runs: list[Run] = Field(description="The runs that made the build, the newest first.")


class Invalidate(RequestBody):
    reason: Text | None = Field(default=None, description="The reason, stored with the build until it is rebuilt.")


class BuildQuery(QueryModel):
    state: BuildState | None = None
    job: Name | None = None
    scope: Annotated[str, Field(max_length=400, pattern=r"^[^\x00]*$")] | None = None
    fingerprint: Annotated[str, Field(max_length=400, pattern=r"^[^\x00]*$")] | None = None
    before: RunId | None = Field(default=None, description="`next` of the previous page.")
    limit: Limit = USUAL


def router(site: "Site") -> APIRouter:
    builds = site.resource("/builds", tags=["builds"])
    hf = site.hf

    def shape(build: Made) -> Build:
        return Build.of(build, hf.builds.uses([build]))

    @builds.get("", name="holdfast.api.builds", summary="List builds, the newest first")
    def list_builds(query: Annotated[BuildQuery, Query()], who: Annotated[Who, Depends(site.viewer)]) -> Page[Build]:
        """Pass `next` as `?before=` for the next page."""
        found = hf.builds.list(**query.model_dump())
        uses = hf.builds.uses(found)
        shown = [Build.of(build, uses, whole=False) for build in found]
        return Page.of(shown, limit=query.limit, cursor=lambda build: build.run_id)

    @builds.get("/{run_id}", name="holdfast.api.build", summary="Get a build and the runs that made it")
    def get_build(run_id: RunId, who: Annotated[Who, Depends(site.viewer)]) -> BuildHistory:
        build = hf.builds.get(run_id)
        runs = hf.builds.history(build)
        return BuildHistory(build=shape(build), runs=[Run.of(run, whole=False) for run in runs])

    @builds.post("/{run_id}/invalidate", name="holdfast.api.invalidate", summary="Mark a build as stale")
    def invalidate_build(run_id: RunId, body: Invalidate, who: Annotated[Who, Depends(site.operator)]) -> Build:
        """The next run that requests the build starts a new one. Runs that already wait for it keep waiting. A build
        that is already stale keeps its reason."""
        return shape(hf.builds.invalidate(run_id, reason=body.reason, by=who.name))

    @builds.post("/{run_id}/rebuild", status_code=201, name="holdfast.api.rebuild", summary="Rebuild now")
    def rebuild_build(run_id: RunId, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """Returns the new run. The earlier run stays in the build's history."""
        return Run.of(hf.builds.rebuild(run_id, by=who.name).snapshot)

    return builds
