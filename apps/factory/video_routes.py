"""/videos: handing scripts in, editing them, and seeing them become videos."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from apps.factory import video_status, videos
from apps.factory.formats import Format
from apps.factory.jobs import hf
from apps.factory.scripts import LONGEST, ScriptInvalid
from apps.factory.settings import settings
from apps.factory.speech import VoiceUnknown
from apps.factory.tables import database
from apps.factory.video_status import VideoStatus
from holdfast.web import Problem, Site, Who, wants_page

PAGE = 100
EXAMPLE = """# A title

What is said while the title is shown.

## The first scene

What is said, and shown as captions.

- A point
- Another point
"""


class Handed(BaseModel):
    """A script that is handed in: as JSON, or as the fields of a form."""

    model_config = ConfigDict(extra="forbid")

    script: str = Field(max_length=2 * LONGEST)
    format: Format | None = None
    after: int | None = Field(default=None, ge=1, description="The edition that was edited; a newer one is a conflict.")


# The body is read by hand, as it may be a form; this is what its reader is told.
BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": Handed.model_json_schema()}}}}


class Answer(BaseModel):
    """What became of it: where to look, and the run that makes it."""

    video_id: str
    edition: int
    run_id: str
    url: str


def router(site: Site) -> APIRouter:
    routes = site.resource(tags=["videos"])

    @routes.get("/", name="factory.root", include_in_schema=False)
    def root(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return RedirectResponse(request.url_for("factory.videos").path, 303)

    @routes.get("/videos", name="factory.videos")
    def overview(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """The newest videos, each as its newest edition stands."""
        with database().read() as session:
            found, pictures = video_status.listed(session, limit=PAGE), sorted(videos.pictures(session))
            deleting = videos.deleting(session)
        if not wants_page(request):
            return _json({"videos": found, "deleting": deleting})
        return site.render(
            request,
            who,
            "factory_videos.html",
            videos=found,
            deleting=deleting,
            pictures=pictures,
            stages=video_status.STAGES,
        )

    @routes.get("/videos/new", name="factory.new", include_in_schema=False)
    def new(request: Request, who: Annotated[Who, Depends(site.operator)]) -> Response:
        return _editor(request, who, EXAMPLE, there=request.url_for("factory.create").path)

    @routes.post("/videos", name="factory.create", status_code=201, response_model=Answer, openapi_extra=BODY)
    async def create(request: Request, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Hand a script in: a new video, which is made at once."""
        given = await _given(request)
        try:
            made = await run_in_threadpool(videos.create, given.script, given.format or Format())
        except ScriptInvalid as error:
            return _refused(request, who, given.script, error, there=request.url_for("factory.create").path)
        except VoiceUnknown as error:
            raise Problem("voice_unknown", str(error), status=422) from error
        return _answer(request, made.video_id, made.number, made.run_id)

    @routes.get("/videos/{video_id}", name="factory.video")
    def video(
        request: Request,
        video_id: str,
        who: Annotated[Who, Depends(site.viewer)],
        edition: Annotated[int | None, Query(ge=1)] = None,
    ) -> Response:
        """How a video stands: its stages, its segments, who holds which lease, and what came of it."""
        found = _standing(video_id, edition)
        if not wants_page(request):
            return _json(_plain(found))
        workers = [one for one in hf.workers.list() if one.claims and one.concurrency]
        busy = {task.holder: task for task in hf.workers.tasks()}
        return site.render(
            request, who, "factory_video.html", video=found, workers=workers, busy=busy, demo=settings().demo
        )

    @routes.get("/videos/{video_id}/edit", name="factory.edit", include_in_schema=False)
    def edit(request: Request, video_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        found = _standing(video_id, None)
        there = request.url_for("factory.editions", video_id=video_id).path
        return _editor(request, who, found.script, there=there, after=found.edition)

    @routes.post(
        "/videos/{video_id}/editions",
        name="factory.editions",
        status_code=201,
        response_model=Answer,
        openapi_extra=BODY,
    )
    async def editions(request: Request, video_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """The next edition of a video; only what has changed is made anew."""
        given = await _given(request)
        try:
            made = await run_in_threadpool(videos.edit, video_id, given.script, after=given.after, shape=given.format)
        except ScriptInvalid as error:
            there = request.url_for("factory.editions", video_id=video_id).path
            return _refused(request, who, given.script, error, there=there, after=given.after)
        except VoiceUnknown as error:
            raise Problem("voice_unknown", str(error), status=422) from error
        except videos.VideoNotFound as error:
            raise Problem("video_not_found", str(error), status=404) from error
        except videos.EditedMeanwhile as error:
            raise Problem("edited_meanwhile", str(error), status=409) from error
        return _answer(request, made.video_id, made.number, made.run_id)

    @routes.post("/videos/{video_id}/cancel", name="factory.cancel")
    def cancel(request: Request, video_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Stop making its newest edition, and whatever works on it."""
        found = _standing(video_id, None)
        state = hf.cancel(found.run_id, reason="cancelled on its page", by=who.name)
        if wants_page(request):
            return RedirectResponse(request.url_for("factory.video", video_id=video_id).path, 303)
        return JSONResponse({"state": state})

    @routes.delete("/videos/{video_id}", name="factory.delete", status_code=204)
    def delete(video_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Delete a video with its runs, artifacts and published files; `video_busy` while it is being made."""
        _delete(video_id, who)
        return Response(status_code=204)

    @routes.post("/videos/{video_id}/delete", name="factory.delete_form", include_in_schema=False)
    def delete_form(request: Request, video_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        _delete(video_id, who)
        return RedirectResponse(request.url_for("factory.videos").path, 303)

    @routes.get("/videos/{video_id}/events", name="factory.events")
    async def events(request: Request, video_id: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """What happens to the newest edition, as it happens."""
        found = await run_in_threadpool(_standing, video_id, None)
        return await site.streams.run(request, found.run_id)

    @routes.get("/jobs", name="factory.jobs")
    def jobs(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """The view `jobs` of the database: each stage's state and lease."""
        with database().read() as session:
            found = video_status.jobs(session, limit=PAGE)
        if not wants_page(request):
            return _json({"jobs": found})
        return site.render(request, who, "factory_jobs.html", jobs=found, stages=video_status.STAGES)

    def _editor(
        request: Request, who: Who, script: str, *, there: str, after: int | None = None, faults: Any = ()
    ) -> Response:
        with database().read() as session:
            pictures = sorted(videos.pictures(session))
        return site.render(
            request, who, "factory_edit.html", script=script, there=there, after=after, faults=faults, pictures=pictures
        )

    def _refused(
        request: Request, who: Who, script: str, error: ScriptInvalid, *, there: str, after: int | None = None
    ) -> Response:
        """What is wrong with a script: beside it for a person, by code and line for a program."""
        if wants_page(request):
            page = _editor(request, who, script, there=there, after=after, faults=error.faults)
            page.status_code = 422
            return page
        problem = {"type": "about:blank", "title": "Does not fit", "status": 422, "code": "script_invalid"}
        told = problem | {"detail": str(error), "faults": [asdict(fault) for fault in error.faults]}
        return JSONResponse(told, 422, media_type="application/problem+json")

    return routes


def _standing(video_id: str, edition: int | None) -> VideoStatus:
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


async def _given(request: Request) -> Handed:
    """The body, as JSON or as a form."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    try:
        if kind == "application/json":
            return Handed.model_validate_json(await request.body())
        form = await request.form()
        # A browser ends lines as the standard says, with two characters.
        script = str(form.get("script", "")).replace("\r\n", "\n")
        return Handed.model_validate({"script": script, "after": form.get("after") or None})
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ") for one in error.errors()]
        raise Problem("invalid_request", f"the request does not fit: {'; '.join(faults)}"[:1000], status=422) from error


def _answer(request: Request, video_id: str, edition: int, run_id: str) -> Response:
    there = request.url_for("factory.video", video_id=video_id).path
    if wants_page(request):
        return RedirectResponse(there, 303)
    told = {"video_id": video_id, "edition": edition, "run_id": run_id, "url": there}
    return JSONResponse(told, 201, headers={"Location": there})


def _plain(found: VideoStatus) -> dict[str, Any]:
    cells = [asdict(cell) | {"state": cell.state} for cell in found.cells]
    return asdict(found) | {"cells": cells, "ended": found.ended}


def _json(found: Any) -> Response:
    from fastapi.encoders import jsonable_encoder

    return JSONResponse(jsonable_encoder(found))
