"""/job-runs: shows the audit log, and triggers slots by hand; they are claimed like scheduled ones."""
# No postponed annotations: FastAPI could not resolve `site`, which the endpoints use as a closure.

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from apps.dailybrief import job_runs
from apps.dailybrief.job_runs import JobRun
from apps.shared.database import Database
from holdfast import HoldfastError, Run
from holdfast.web import Problem, Site, Who, wants_page

MAX_LIMIT, DEFAULT_LIMIT = 500, 100
MESSAGES = {
    "claimed": "The slot is claimed, and the worker will run it now",
    "slot_taken": "The slot was claimed before, so nothing was started",
    "still_running": "An earlier run of the job is still active, so nothing was started",
    "no_worker": "No worker is running, so nothing was started",
    "bad_slot": "The time is not valid; write it like 2026-11-16T06:00:00",
    "invalid_policy": "The time must be between 1970 and a year from now",
    "unknown_job": "The job does not exist",
    "refused": "The trigger was refused, and nothing was started",
}
"""The message on the page after a trigger, by its result."""


class NewSlot(BaseModel):
    """The body of a request to trigger a slot. `scheduled_for` must have a time zone."""

    model_config = ConfigDict(extra="forbid")

    job_name: str = Field(min_length=1, max_length=128)
    scheduled_for: datetime


def router(site: Site, *, database: Database, jobs: tuple[str, ...]) -> APIRouter:
    pages = site.resource("/job-runs", tags=["job runs"])

    def trigger_slot(job_name: str, scheduled_for: datetime, by: str) -> Run[Any]:
        if job_name not in jobs:
            raise Problem("unknown_job", f"no job is named {job_name!r}; choose from: {', '.join(jobs)}", status=422)
        if scheduled_for.tzinfo is None:
            error = f"scheduled_for={scheduled_for} has no time zone; add one, such as +00:00"
            raise Problem("slot_without_zone", error, status=422)
        return site.hf.schedules.trigger(job_name, scheduled_for=scheduled_for, by=by)

    def page(request: Request, who: Who, *, job: str, status: str) -> Response:
        with database.read() as session:
            found = job_runs.latest(session, limit=DEFAULT_LIMIT, job_name=job or None, status=status or None)
        query = request.query_params
        return site.render(
            request,
            who,
            "job_runs.html",
            runs=found,
            jobs=jobs,
            statuses=job_runs.STATUSES,
            schedules={info.name: info for info in site.hf.schedules.list()},
            workers=site.hf.workers.list(),
            job=job,
            status=status,
            slot_now=f"{site.hf.clock.now().astimezone(UTC):%Y-%m-%dT%H:%M:%S}",
            message=MESSAGES.get(query.get("result", "")),
            bad=query.get("result") != "claimed",
            slot=f"{query.get('slot', '')[:200]}",
        )

    @pages.get("", name="job_runs")
    def runs(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        job: Annotated[str, Query(max_length=128, pattern=r"^[^\x00]*$")] = "",
        status: Annotated[str, Query(max_length=16)] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
    ) -> Response:
        """The latest job runs, the newest claim first, filtered by job and status."""
        if status and status not in job_runs.STATUSES:
            known = ", ".join(job_runs.STATUSES)
            raise Problem("unknown_status", f"{status!r} is not a status; choose from: {known}", status=422)
        if wants_page(request):
            return page(request, who, job=job, status=status)
        with database.read() as session:
            found = job_runs.latest(session, limit=limit, job_name=job or None, status=status or None)
        return JSONResponse({"job_runs": [to_json(one) for one in found]})

    @pages.post("", name="job_runs.trigger", status_code=201)
    def trigger(body: NewSlot, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Trigger a slot. Answers 409 with `slot_taken` if it was claimed before, `still_running` if an earlier run is
        active, or `no_worker` if no worker is running."""
        run = trigger_slot(body.job_name, body.scheduled_for, who.name)
        slot = body.scheduled_for.astimezone(UTC).isoformat()
        return JSONResponse({"id": run.id, "job_name": body.job_name, "scheduled_for": slot}, status_code=201)

    @pages.post("/trigger", name="job_runs.form", include_in_schema=False)
    def trigger_by_form(
        request: Request,
        who: Annotated[Who, Depends(site.operator)],
        job_name: Annotated[str, Form(max_length=128)] = "",
        scheduled_for: Annotated[str, Form(max_length=40)] = "",
    ) -> Response:
        try:
            trigger_slot(job_name, _instant(scheduled_for), who.name)
            result = "claimed"
        except (Problem, HoldfastError) as error:
            result = error.problem if isinstance(error, Problem) else error.code
        # Redirect, because the page reloads itself, and a reload must not trigger again.
        shown = result if result in MESSAGES else "refused"
        query = urlencode({"result": shown, "slot": f"{job_name} at {scheduled_for}"})
        return RedirectResponse(f"{request.url_for('job_runs').path}?{query}", 303)

    return pages


def to_json(run: JobRun) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(run).items()}


def _instant(text: str) -> datetime:
    """Parse the time in the form field, which is in UTC unless it has a time zone."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Problem("bad_slot", f"{text!r} is not a time; write it like 2026-11-16T06:00:00", status=422) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
