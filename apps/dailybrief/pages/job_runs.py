"""/job-runs: the audit log; and a slot triggered by hand, through the same claim as the clock's."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

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

MOST, USUAL = 500, 100
SAID = {
    "claimed": "The slot is claimed; the worker runs it now",
    "slot_taken": "That slot has been claimed before; nothing was started",
    "still_running": "An earlier run of the job has not ended; nothing was started",
    "no_worker": "The worker is not alive; nothing was started",
    "bad_slot": "A slot is an instant like 2026-11-16T06:00:00",
    "invalid_policy": "A slot lies between 1970 and a year from now",
    "unknown_job": "There is no such job",
    "refused": "It was refused; nothing was started",
}
"""What a person is told after a trigger, by what became of it."""


class NewSlot(BaseModel):
    """What a program sends to trigger a job: the slot, in full. Without a zone it is refused."""

    model_config = ConfigDict(extra="forbid")

    job_name: str = Field(min_length=1, max_length=128)
    scheduled_for: datetime


def router(site: Site, *, database: Database, jobs: tuple[str, ...]) -> APIRouter:
    pages = site.resource("/job-runs", tags=["job runs"])

    def triggered(job_name: str, scheduled_for: datetime, by: str) -> Run[Any]:
        if job_name not in jobs:
            raise Problem("unknown_job", f"there is no job {job_name!r}; there is: {', '.join(jobs)}", status=422)
        if scheduled_for.tzinfo is None:
            raise Problem("slot_without_zone", f"scheduled_for={scheduled_for} has no time zone", status=422)
        return site.hf.schedules.trigger(job_name, scheduled_for=scheduled_for, by=by)

    def page(request: Request, who: Who, *, job: str, status: str) -> Response:
        with database.read() as session:
            found = job_runs.latest(session, limit=USUAL, job_name=job or None, status=status or None)
        asked = request.query_params
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
            said=SAID.get(asked.get("said", "")),
            bad=asked.get("said") != "claimed",
            which=f"{asked.get('which', '')[:200]}",
        )

    @pages.get("", name="job_runs")
    def runs(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        job: Annotated[str, Query(max_length=128, pattern=r"^[^\x00]*$")] = "",
        status: Annotated[str, Query(max_length=16)] = "",
        limit: Annotated[int, Query(ge=1, le=MOST)] = USUAL,
    ) -> Response:
        """The newest claims first, of one job or all, in one status or all."""
        if status and status not in job_runs.STATUSES:
            known = ", ".join(job_runs.STATUSES)
            raise Problem("unknown_status", f"there is no status {status!r}; there is: {known}", status=422)
        if wants_page(request):
            return page(request, who, job=job, status=status)
        with database.read() as session:
            found = job_runs.latest(session, limit=limit, job_name=job or None, status=status or None)
        return JSONResponse({"job_runs": [told(one) for one in found]})

    @pages.post("", name="job_runs.trigger", status_code=201)
    def trigger(body: NewSlot, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Claim a slot; 409 `slot_taken` if someone has it, `still_running` if an earlier run has not ended,
        `no_worker` if the worker is not alive."""
        run = triggered(body.job_name, body.scheduled_for, who.name)
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
            triggered(job_name, _instant(scheduled_for), who.name)
            said = "claimed"
        except (Problem, HoldfastError) as error:
            said = error.problem if isinstance(error, Problem) else error.code
        # Back to the page: what renews itself must be something that can be asked for again.
        query = urlencode({"said": said if said in SAID else "refused", "which": f"{job_name} at {scheduled_for}"})
        return RedirectResponse(f"{request.url_for('job_runs').path}?{query}", 303)

    return pages


def told(one: JobRun) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(one).items()}


def _instant(text: str) -> datetime:
    """A slot as the field gives it: in UTC, as the page says, unless it has a zone."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Problem("bad_slot", f"a slot is an instant like 2026-11-16T06:00:00, not {text!r}", status=422) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
