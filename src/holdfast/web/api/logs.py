"""/api/runs/…/logs and /api/runs/…/steps: the log and the finished steps of a run."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends
from pydantic import Field

from holdfast.support import json_text
from holdfast.support.errors import StepNotFound
from holdfast.values.logs import Logs
from holdfast.values.pages import Page
from holdfast.values.runs import Step as Done
from holdfast.web.api.shapes import LONG, MOST, Cursor, Limit, Name, RunId, Shape, Text
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class Step(Shape):
    """A finished step of a run, with its stored result."""

    name: str
    number: int = Field(description="Position of the step within its attempt, from 1.")
    claim: int
    attempts: int
    started_at: datetime
    finished_at: datetime
    result: Any
    cut: bool = Field(description=f"True in a list if the result has over {LONG:,} characters and is left out.")


def router(site: "Site") -> APIRouter:
    logs = site.resource("/runs", tags=["runs"])
    hf = site.hf

    @logs.get("/{run_id}/logs", name="holdfast.api.logs", summary="Get the log of a run")
    def list_logs(
        run_id: RunId,
        who: Annotated[Who, Depends(site.viewer)],
        level: Level = "DEBUG",
        text: Text | None = None,
        after: Cursor | None = None,
        limit: Limit = MOST,
    ) -> Logs:
        """Records of at least this level that contain this text, in order; case does not matter."""
        return hf.logs(run_id, level=level, text=text, after=after, limit=limit)

    @logs.get("/{run_id}/steps", name="holdfast.api.steps", summary="List the finished steps of a run")
    def list_steps(run_id: RunId, who: Annotated[Who, Depends(site.viewer)]) -> Page[Step]:
        return Page.whole(_step(step, whole=False) for step in hf.steps(run_id))

    @logs.get("/{run_id}/steps/{name:path}", name="holdfast.api.step", summary="Get a step with its full result")
    def get_step(run_id: RunId, name: Name, who: Annotated[Who, Depends(site.viewer)]) -> Step:
        for step in hf.steps(run_id):
            if step.name == name:
                return _step(step, whole=True)
        raise StepNotFound(f"run {run_id} has no finished step {name!r}")

    return logs


def _step(step: Done, *, whole: bool) -> Step:
    cut = not whole and len(step.result) > LONG
    result = None if cut else json_text.shown(step.result)
    return Step(**{name: getattr(step, name) for name in _SAME}, result=result, cut=cut)


_SAME = ("name", "number", "claim", "attempts", "started_at", "finished_at")
