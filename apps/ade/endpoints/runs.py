"""/runs: one execution of the engine for one document."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

import math
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from apps.ade import jobs, runs
from apps.ade.endpoints import schemas
from apps.ade.endpoints.schemas import (
    FILE,
    STREAM,
    USUAL,
    FileName,
    Id,
    Limit,
    Log,
    LogLine,
    NewRun,
    Output,
    Outputs,
    Preview,
    Run,
    Runs,
)
from apps.ade.jobs import database, hf
from apps.ade.runs import NotHere, RunStatus, RunView
from holdfast import ArtifactNotFound, QueueFull
from holdfast.web import Problem, Site, Who, wants_page

LINES = 1000
BLOCK = 1 << 16
MOST_PREVIEW = 5_000_000


def router(site: Site) -> APIRouter:
    pages = site.resource(tags=["runs"])

    @pages.post("/configurations/{configuration_id}/runs", name="ade.submit", status_code=201, summary="Queue a run")
    def create_run(
        request: Request, configuration_id: Id, asked: NewRun, who: Annotated[Who, Depends(site.operator)]
    ) -> Run:
        """Answers at once. Its build is got or created. 429 `run_queue_full` if too many runs have not ended."""
        return schemas.run(request, _found(_submit(configuration_id, asked.input_document_id)))

    @pages.post("/configurations/{configuration_id}/run", name="ade.submit_form", include_in_schema=False)
    def create_run_by_form(
        request: Request,
        configuration_id: Id,
        input_document_id: Annotated[Id, Form()],
        who: Annotated[Who, Depends(site.operator)],
    ) -> Response:
        run_id = _submit(configuration_id, input_document_id)
        return RedirectResponse(request.url_for("ade.run", run_id=run_id).path, 303)

    @pages.get("/runs", name="ade.runs", response_model=Runs, summary="The newest runs")
    def list_runs(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        status: RunStatus | None = None,
        configuration_id: Id | None = None,
        limit: Limit = USUAL,
        before: Id | None = None,
    ) -> Any:
        with database.read() as session:
            found = runs.listed(session, status=status, configuration_id=configuration_id, limit=limit, before=before)
        following = found[-1].row.id if len(found) == limit else None
        if wants_page(request):
            return site.render(
                request,
                who,
                "ade_runs.html",
                runs=found,
                status=status,
                next=following,
                reason=runs.reason,
                summary=schemas.summary,
                bound=jobs.queue_size(),
                own_bound=jobs.given.queue_size,
            )
        return Runs(runs=[schemas.run(request, each) for each in found], next=following)

    @pages.get("/runs/{run_id}", name="ade.run", response_model=Run, summary="One run")
    def get_run(request: Request, run_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Any:
        view = _found(run_id)
        if not wants_page(request):
            return schemas.run(request, view)
        return site.render(
            request,
            who,
            "ade_run.html",
            run=view,
            summary=schemas.summary(view),
            reason=runs.reason(view.message),
            log=hf.logs(run_id, limit=LINES).records,
            outputs=hf.artifacts.of(run_id),
            preview=_preview(run_id) if view.status == "succeeded" else None,
        )

    @pages.post("/runs/{run_id}/cancel", name="ade.cancel", response_model=Run, summary="Cancel a run")
    def cancel_run(request: Request, run_id: Id, who: Annotated[Who, Depends(site.operator)]) -> Any:
        """One that is queued never runs; the engine of one that runs is stopped. One that has ended stays as it is."""
        _found(run_id)
        hf.cancel(run_id, reason=f"cancelled by {who.name}", by=who.name)
        if wants_page(request):
            return RedirectResponse(request.url_for("ade.run", run_id=run_id).path, 303)
        return schemas.run(request, _found(run_id))

    @pages.post(
        "/runs/{run_id}/again", name="ade.again", status_code=201, response_model=Run, summary="Run again: a new run"
    )
    def run_again(request: Request, run_id: Id, who: Annotated[Who, Depends(site.operator)]) -> Any:
        """The same document with the configuration as it is now. The earlier run stays as it was."""
        earlier = _found(run_id).row
        new_id = _submit(earlier.configuration_id, earlier.input_document_id)
        if wants_page(request):
            return RedirectResponse(request.url_for("ade.run", run_id=new_id).path, 303)
        return schemas.run(request, _found(new_id))

    @pages.get(
        "/runs/{run_id}/events",
        name="ade.run_events",
        response_class=Response,
        responses=STREAM,
        summary="What happens to it, live",
    )
    async def stream_run(request: Request, run_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Its log among it. A stream only looks: it starts nothing."""
        await run_in_threadpool(_found, run_id)
        return await site.streams.run(request, run_id)

    @pages.get("/runs/{run_id}/log", name="ade.log", summary="Its log")
    def get_log(run_id: Id, who: Annotated[Who, Depends(site.viewer)], after: str | None = None) -> Log:
        _found(run_id)
        found = hf.logs(run_id, after=after, limit=LINES)
        lines = [LogLine(at=each.happened_at, level=each.level, message=each.message) for each in found.records]
        return Log(lines=lines, next=found.next)

    @pages.get("/runs/{run_id}/outputs", name="ade.outputs", summary="The files that it has made")
    def list_outputs(request: Request, run_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Outputs:
        _found(run_id)
        made = [
            Output(
                name=each.name,
                size=each.size,
                sha256=each.sha256,
                url=request.url_for("ade.output", run_id=run_id, name=each.name).path,
            )
            for each in hf.artifacts.of(run_id)
        ]
        return Outputs(run_id=run_id, outputs=made)

    @pages.get(
        "/runs/{run_id}/outputs/{name}",
        name="ade.output",
        response_class=Response,
        responses=FILE,
        summary="One of these files",
    )
    def download_output(run_id: Id, name: FileName, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        _found(run_id)
        made = hf.artifacts.get(run_id, name)
        headers = {
            # A name of an artifact has no character that means anything here.
            "Content-Disposition": f'attachment; filename="{made.name}"',
            "Content-Length": str(made.size),
            "ETag": f'"{made.sha256}"',
        }
        return StreamingResponse(_blocks(made.open()), headers=headers, media_type="application/octet-stream")

    @pages.get("/runs/{run_id}/preview", name="ade.preview", summary="The first rows of what came out")
    def get_preview(run_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Preview:
        _found(run_id)
        found = _preview(run_id)
        if found is None:
            raise Problem("no_preview", "this run has left no table", status=404)
        return found

    return pages


def _submit(configuration_id: str, document_id: str) -> str:
    """One transaction: the bound, the build, the run."""
    try:
        with database.write() as session:
            return runs.submit(session, configuration_id, document_id)
    except QueueFull as full:
        after = math.ceil(full.retry_after.total_seconds())
        raise Problem(
            "run_queue_full",
            f"{full.queued} runs have not ended, and no more than {full.limit} may wait (ADE_QUEUE_SIZE): "
            f"there may be a place in {after} s",
            status=429,
            headers={"Retry-After": str(after)},
        ) from None
    except NotHere as error:
        raise Problem(f"{error.what}_not_found", str(error), status=404) from None


def _found(run_id: str) -> RunView:
    with database.read() as session:
        view = runs.view(session, run_id)
    if view is None:
        raise Problem("run_not_found", f"there is no run {run_id}", status=404)
    return view


def _preview(run_id: str) -> Preview | None:
    try:
        made = hf.artifacts.get(run_id, "preview.json")
    except ArtifactNotFound:
        return None
    with made.open() as file:
        try:
            return Preview.model_validate_json(file.read(MOST_PREVIEW))
        except ValueError:  # larger than is shown, or a user's code has a hand in it
            return None


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while block := file.read(BLOCK):
            yield block
