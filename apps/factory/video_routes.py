"""/videos: submitting and editing scripts, and watching them become videos."""
# No `from __future__ import annotations` here: FastAPI could not resolve `site`, which the annotations use.

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from apps.factory import video_status, videos
from apps.factory.formats import Format
from apps.factory.jobs import hf
from apps.factory.scripts import MAX_LENGTH, ScriptInvalid
from apps.factory.settings import settings
from apps.factory.speech import VoiceUnknown
from apps.factory.tables import database
from apps.factory.video_status import VideoStatus
from holdfast.web import Problem, Site, Who, wants_page

PAGE = 100
EXAMPLE = """# Release notes for April

This is spoken while the title is shown.

## Faster imports

Importing a feed now takes half as long. This text is spoken, and shown as captions.

- Feeds are fetched in parallel
- Unchanged articles are skipped
"""


class ScriptBody(BaseModel):
    """A submitted script, as JSON or as the fields of a form."""

    model_config = ConfigDict(extra="forbid")

    script: str = Field(max_length=2 * MAX_LENGTH)
    format: Format | None = None
    after: int | None = Field(
        default=None, ge=1, description="The edition that was edited; 409 if there is a newer one."
    )


# The routes read the body themselves, because it may be a form; this describes it in the OpenAPI document.
BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": ScriptBody.model_json_schema()}}}}


class SubmittedEdition(BaseModel):
    """A submitted edition: its page, and the run that makes it."""

    video_id: str
    edition: int
    run_id: str
    url: str


def router(site: Site) -> APIRouter:
    routes = site.resource(tags=["videos"])

    @routes.get("/", name="factory.root", include_in_schema=False)
    def root(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return RedirectResponse(request.url_for("factory.videos").path, 303)

    @routes.get("/videos", name="factory.videos", summary="List the newest videos")
    def overview(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Lists each video with the status of its newest edition, and the videos that are being deleted."""
        with database().read() as session:
            newest, pictures = video_status.listed(session, limit=PAGE), sorted(videos.pictures(session))
            deleting = videos.deleting(session)
        if not wants_page(request):
            return _json({"videos": newest, "deleting": deleting})
        return site.render(
            request,
            who,
            "factory_videos.html",
            videos=newest,
            deleting=deleting,
            pictures=pictures,
            stages=video_status.STAGES,
        )

    @routes.get("/videos/new", name="factory.new", include_in_schema=False)
    def new(request: Request, who: Annotated[Who, Depends(site.operator)]) -> Response:
        return _editor(request, who, EXAMPLE, action=request.url_for("factory.create").path)

    @routes.post(
        "/videos",
        name="factory.create",
        status_code=201,
        response_model=SubmittedEdition,
        openapi_extra=BODY,
        summary="Submit a script",
    )
    async def create(request: Request, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Creates a video and starts to make it. Answers 422 `script_invalid` with all faults of an invalid script."""
        body = await _read_body(request)
        try:
            edition = await run_in_threadpool(videos.create, body.script, body.format or Format())
        except ScriptInvalid as error:
            return _refused(request, who, body.script, error, action=request.url_for("factory.create").path)
        except VoiceUnknown as error:
            raise Problem("voice_unknown", str(error), status=422) from error
        return _submitted(request, edition.video_id, edition.number, edition.run_id)

    @routes.get("/videos/{video_id}", name="factory.video", summary="Get a video")
    def video(
        request: Request,
        video_id: str,
        who: Annotated[Who, Depends(site.viewer)],
        edition: Annotated[int | None, Query(ge=1)] = None,
    ) -> Response:
        """Shows the stages, segments and leases of a video, and the manifest once it is published."""
        status = _status(video_id, edition)
        if not wants_page(request):
            return _json(_as_dict(status))
        workers = [one for one in hf.workers.list() if one.claims and one.concurrency]
        busy = {task.holder: task for task in hf.workers.active_runs()}
        return site.render(
            request, who, "factory_video.html", video=status, workers=workers, busy=busy, demo=settings().demo
        )

    @routes.get("/videos/{video_id}/edit", name="factory.edit", include_in_schema=False)
    def edit(request: Request, video_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        status = _status(video_id, None)
        action = request.url_for("factory.editions", video_id=video_id).path
        return _editor(request, who, status.script, action=action, after=status.edition)

    @routes.post(
        "/videos/{video_id}/editions",
        name="factory.editions",
        status_code=201,
        response_model=SubmittedEdition,
        openapi_extra=BODY,
        summary="Edit the script",
    )
    async def editions(request: Request, video_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Creates the next edition of a video; only the changed scenes are made again."""
        body = await _read_body(request)
        try:
            edition = await run_in_threadpool(
                videos.edit, video_id, body.script, after=body.after, video_format=body.format
            )
        except ScriptInvalid as error:
            action = request.url_for("factory.editions", video_id=video_id).path
            return _refused(request, who, body.script, error, action=action, after=body.after)
        except VoiceUnknown as error:
            raise Problem("voice_unknown", str(error), status=422) from error
        except videos.VideoNotFound as error:
            raise Problem("video_not_found", str(error), status=404) from error
        except videos.EditedMeanwhile as error:
            raise Problem("edited_meanwhile", str(error), status=409) from error
        return _submitted(request, edition.video_id, edition.number, edition.run_id)

    @routes.post("/videos/{video_id}/cancel", name="factory.cancel", summary="Cancel the newest edition")
    def cancel(request: Request, video_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Cancels the newest edition, and stops its running stages and segments."""
        status = _status(video_id, None)
        state = hf.cancel(status.run_id, reason="cancelled on its page", by=who.name)
        if wants_page(request):
            return RedirectResponse(request.url_for("factory.video", video_id=video_id).path, 303)
        return JSONResponse({"state": state})

    @routes.delete("/videos/{video_id}", name="factory.delete", status_code=204, summary="Delete a video")
    def delete(video_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Deletes a video with its runs, artifacts and published files. Answers 409 `video_busy` while it is made."""
        _delete(video_id, who)
        return Response(status_code=204)

    @routes.post("/videos/{video_id}/delete", name="factory.delete_form", include_in_schema=False)
    def delete_form(request: Request, video_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        _delete(video_id, who)
        return RedirectResponse(request.url_for("factory.videos").path, 303)

    @routes.get("/videos/{video_id}/events", name="factory.events", summary="Stream the events of the newest edition")
    async def events(request: Request, video_id: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Streams events until the edition has ended."""
        status = await run_in_threadpool(_status, video_id, None)
        return await site.streams.run(request, status.run_id)

    @routes.get("/jobs", name="factory.jobs", summary="List the jobs")
    def jobs(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Lists the newest rows of the database view `jobs`, which has the state and the lease of each stage."""
        with database().read() as session:
            rows = video_status.jobs(session, limit=PAGE)
        if not wants_page(request):
            return _json({"jobs": rows})
        return site.render(request, who, "factory_jobs.html", jobs=rows, stages=video_status.STAGES)

    def _editor(
        request: Request, who: Who, script: str, *, action: str, after: int | None = None, faults: Any = ()
    ) -> Response:
        with database().read() as session:
            pictures = sorted(videos.pictures(session))
        return site.render(
            request,
            who,
            "factory_edit.html",
            script=script,
            action=action,
            after=after,
            faults=faults,
            pictures=pictures,
        )

    def _refused(
        request: Request, who: Who, script: str, error: ScriptInvalid, *, action: str, after: int | None = None
    ) -> Response:
        """Answer 422 with the faults of a script: above the script on the page, or as JSON."""
        if wants_page(request):
            page = _editor(request, who, script, action=action, after=after, faults=error.faults)
            page.status_code = 422
            return page
        problem = {"type": "about:blank", "title": "Invalid script", "status": 422, "code": "script_invalid"}
        details = {"detail": str(error), "faults": [asdict(fault) for fault in error.faults]}
        return JSONResponse(problem | details, 422, media_type="application/problem+json")

    return routes


def _status(video_id: str, edition: int | None) -> VideoStatus:
    try:
        with database().read() as session:
            return video_status.status_of(session, video_id, edition)
    except videos.VideoNotFound as error:
        raise Problem("video_not_found", str(error), status=404) from error


def _delete(video_id: str, who: Who) -> None:
    try:
        videos.delete(video_id, by=who.name)
    except videos.VideoNotFound as error:
        raise Problem("video_not_found", str(error), status=404) from error
    except videos.VideoBusy as error:
        raise Problem("video_busy", str(error), status=409) from error


async def _read_body(request: Request) -> ScriptBody:
    """Read the body, which is JSON or a form."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    try:
        if kind == "application/json":
            return ScriptBody.model_validate_json(await request.body())
        form = await request.form()
        # Browsers send \r\n at the end of each line.
        script = str(form.get("script", "")).replace("\r\n", "\n")
        return ScriptBody.model_validate({"script": script, "after": form.get("after") or None})
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ") for one in error.errors()]
        raise Problem("invalid_request", f"the request is invalid: {'; '.join(faults)}"[:1000], status=422) from error


def _submitted(request: Request, video_id: str, edition: int, run_id: str) -> Response:
    url = request.url_for("factory.video", video_id=video_id).path
    if wants_page(request):
        return RedirectResponse(url, 303)
    body = {"video_id": video_id, "edition": edition, "run_id": run_id, "url": url}
    return JSONResponse(body, 201, headers={"Location": url})


def _as_dict(status: VideoStatus) -> dict[str, Any]:
    segments = [asdict(segment) | {"state": segment.state} for segment in status.segments]
    return asdict(status) | {"segments": segments, "ended": status.ended}


def _json(content: Any) -> Response:
    from fastapi.encoders import jsonable_encoder

    return JSONResponse(jsonable_encoder(content))
