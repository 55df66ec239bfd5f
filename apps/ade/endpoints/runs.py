"""/runs: executions of the engine, each for one document."""
# No `from __future__ import annotations` here: FastAPI could not resolve `site`, which the annotations use.

import math
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from apps.ade import jobs, runs
from apps.ade.endpoints import schemas
from apps.ade.endpoints.schemas import (
    DEFAULT_LIMIT,
    FILE,
    STREAM,
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
from apps.ade.runs import NotFound, RunStatus, RunView
from holdfast import ArtifactNotFound, QueueFull
from holdfast.web import Problem, Site, Who, wants_page

LINES = 1000
BLOCK = 1 << 16
MAX_PREVIEW_BYTES = 5_000_000


def router(site: Site) -> APIRouter:
    pages = site.resource(tags=["runs"])

    @pages.post("/configurations/{configuration_id}/runs", name="ade.submit", status_code=201, summary="Queue a run")
    def create_run(
        request: Request, configuration_id: Id, body: NewRun, who: Annotated[Who, Depends(site.operator)]
    ) -> Run:
        """Queues a run, and gets or creates its build. Answers 429 `run_queue_full` if too many runs are unfinished."""
        return schemas.run(request, _get(_submit(configuration_id, body.input_document_id)))

    @pages.post("/configurations/{configuration_id}/run", name="ade.submit_form", include_in_schema=False)
    def create_run_by_form(
        request: Request,
        configuration_id: Id,
        input_document_id: Annotated[Id, Form()],
        who: Annotated[Who, Depends(site.operator)],
    ) -> Response:
        run_id = _submit(configuration_id, input_document_id)
        return RedirectResponse(request.url_for("ade.run", run_id=run_id).path, 303)

    @pages.get("/runs", name="ade.runs", response_model=Runs, summary="List the newest runs")
    def list_runs(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        status: RunStatus | None = None,
        configuration_id: Id | None = None,
        limit: Limit = DEFAULT_LIMIT,
        before: Id | None = None,
    ) -> Any:
        with database.read() as session:
            page = runs.listed(session, status=status, configuration_id=configuration_id, limit=limit, before=before)
        next_before = page[-1].row.id if len(page) == limit else None
        if wants_page(request):
            return site.render(
                request,
                who,
                "ade_runs.html",
                runs=page,
                status=status,
                next=next_before,
                reason=runs.reason,
                summary=schemas.summary,
                queue_size=jobs.queue_size(),
                own_queue_size=jobs.settings.queue_size,
            )
        return Runs(runs=[schemas.run(request, each) for each in page], next=next_before)

    @pages.get("/runs/{run_id}", name="ade.run", response_model=Run, summary="Get a run")
    def get_run(request: Request, run_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Any:
        view = _get(run_id)
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
        """Cancels a queued run, or stops a running one. A run that has already ended is not changed."""
        _get(run_id)
        hf.cancel(run_id, reason=f"cancelled by {who.name}", by=who.name)
        if wants_page(request):
            return RedirectResponse(request.url_for("ade.run", run_id=run_id).path, 303)
        return schemas.run(request, _get(run_id))

    @pages.post(
        "/runs/{run_id}/again", name="ade.again", status_code=201, response_model=Run, summary="Run again, as a new run"
    )
    def run_again(request: Request, run_id: Id, who: Annotated[Who, Depends(site.operator)]) -> Any:
        """Submits a new run of the same document with the configuration's current version. The earlier run stays."""
        earlier = _get(run_id).row
        new_id = _submit(earlier.configuration_id, earlier.input_document_id)
        if wants_page(request):
            return RedirectResponse(request.url_for("ade.run", run_id=new_id).path, 303)
        return schemas.run(request, _get(new_id))

    @pages.get(
        "/runs/{run_id}/events",
        name="ade.run_events",
        response_class=Response,
        responses=STREAM,
        summary="Stream the run's events and log",
    )
    async def stream_run(request: Request, run_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Streams events until the run has ended. Streaming never starts work."""
        await run_in_threadpool(_get, run_id)
        return await site.streams.run(request, run_id)

    @pages.get("/runs/{run_id}/log", name="ade.log", summary="Get the run's log")
    def get_log(run_id: Id, who: Annotated[Who, Depends(site.viewer)], after: str | None = None) -> Log:
        _get(run_id)
        page = hf.logs(run_id, after=after, limit=LINES)
        lines = [LogLine(at=each.happened_at, level=each.level, message=each.message) for each in page.records]
        return Log(lines=lines, next=page.next)

    @pages.get("/runs/{run_id}/outputs", name="ade.outputs", summary="List the run's output files")
    def list_outputs(request: Request, run_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Outputs:
        _get(run_id)
        outputs = [
            Output(
                name=each.name,
                size=each.size,
                sha256=each.sha256,
                url=request.url_for("ade.output", run_id=run_id, name=each.name).path,
            )
            for each in hf.artifacts.of(run_id)
        ]
        return Outputs(run_id=run_id, outputs=outputs)

    @pages.get(
        "/runs/{run_id}/outputs/{name}",
        name="ade.output",
        response_class=Response,
        responses=FILE,
        summary="Download an output file",
    )
    def download_output(run_id: Id, name: FileName, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        _get(run_id)
        artifact = hf.artifacts.get(run_id, name)
        headers = {
            # Artifact names contain no character that would need escaping in this header.
            "Content-Disposition": f'attachment; filename="{artifact.name}"',
            "Content-Length": str(artifact.size),
            "ETag": f'"{artifact.sha256}"',
        }
        return StreamingResponse(_blocks(artifact.open()), headers=headers, media_type="application/octet-stream")

    @pages.get("/runs/{run_id}/preview", name="ade.preview", summary="Get the first rows of the output")
    def get_preview(run_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Preview:
        _get(run_id)
        preview = _preview(run_id)
        if preview is None:
            raise Problem("no_preview", "this run has no preview of its output", status=404)
        return preview

    return pages


def _submit(configuration_id: str, document_id: str) -> str:
    """Check the queue's size, find or create the build and insert the run, in one transaction."""
    try:
        with database.write() as session:
            return runs.submit(session, configuration_id, document_id)
    except QueueFull as full:
        after = math.ceil(full.retry_after.total_seconds())
        raise Problem(
            "run_queue_full",
            f"{full.queued} runs are unfinished, and ADE_QUEUE_SIZE allows at most {full.limit}; "
            f"submit again in about {after} s",
            status=429,
            headers={"Retry-After": str(after)},
        ) from None
    except NotFound as error:
        raise Problem(f"{error.noun}_not_found", str(error), status=404) from None


def _get(run_id: str) -> RunView:
    with database.read() as session:
        view = runs.view(session, run_id)
    if view is None:
        raise Problem("run_not_found", f"there is no run {run_id}", status=404)
    return view


def _preview(run_id: str) -> Preview | None:
    try:
        artifact = hf.artifacts.get(run_id, "preview.json")
    except ArtifactNotFound:
        return None
    with artifact.open() as file:
        try:
            return Preview.model_validate_json(file.read(MAX_PREVIEW_BYTES))
        except ValueError:  # longer than MAX_PREVIEW_BYTES, or tampered with by the user's rules
            return None


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while block := file.read(BLOCK):
            yield block
