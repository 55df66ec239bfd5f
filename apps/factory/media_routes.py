"""Routes of files: segments of a video, its published files, and the pictures that scripts show.

Players can request parts of a file (`Range`).
"""
# No `from __future__ import annotations` here: FastAPI could not resolve `site`, which the annotations use.

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from apps.factory import publishing, slides, video_status, videos
from apps.factory.jobs import folder_of, hf
from apps.factory.media_cache import LOST
from apps.factory.tables import database
from holdfast.web import IMAGES, Problem, Site, Who, magic, takes, wants_page

TYPES = {
    ".mp4": "video/mp4",
    ".jpg": "image/jpeg",
    ".srt": "application/x-subrip",
    ".json": "application/json",
    ".wav": "audio/wav",
}
# Only the user's browser may cache. A segment never changes; a published file may be deleted.
CACHED, NOT_CACHED = {"Cache-Control": "private, max-age=86400"}, {"Cache-Control": "private, no-cache"}


def router(site: Site) -> APIRouter:
    routes = site.resource(tags=["files"])

    @routes.get(
        "/videos/{video_id}/editions/{edition}/files/{name}", name="factory.file", summary="Download a published file"
    )
    def file(video_id: str, edition: int, name: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """One of video.mp4, captions.srt, chapters.json, poster.jpg and manifest.json."""
        _get(video_id, edition)
        folder = folder_of(video_id, edition)
        manifest = publishing.read(folder) or {"files": {}}
        # Serve only files that the manifest names: no path outside the folder, and no partly written file.
        if name not in (*manifest["files"], publishing.MANIFEST) or not (folder / name).is_file():
            raise Problem("file_not_found", f"{video_id} has no published file {name!r}", status=404)
        return _file_response(folder / name, NOT_CACHED)

    @routes.get(
        "/videos/{video_id}/editions/{edition}/segments/{number}/{name}",
        name="factory.segment",
        summary="Download a file of a segment",
    )
    def segment(
        video_id: str, edition: int, number: int, name: str, who: Annotated[Who, Depends(site.viewer)]
    ) -> Response:
        """One of film.mp4, thumbnail.jpg, speech.wav and speech.json, once the segment is done."""
        segments = _get(video_id, edition).segments
        part = segments[number].parts.get(name) if 0 <= number < len(segments) else None
        if part is None:
            raise Problem("file_not_found", f"segment {number} has no file {name!r} yet", status=404)
        try:
            path = hf.artifacts.get(part["run_id"], part["name"]).path
        except LOST as error:
            raise Problem("file_not_found", str(error), status=404) from error
        if path is None or not path.is_file():
            raise Problem("file_not_found", f"{part['name']} no longer exists", status=404)
        return _file_response(path, CACHED)

    @routes.get("/pictures", name="factory.pictures", summary="List the pictures")
    def pictures(who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """The names of the pictures that scripts can show, with the SHA-256 of each."""
        with database().read() as session:
            return JSONResponse({"pictures": videos.pictures(session)})

    @routes.post("/pictures/{name}", name="factory.picture", status_code=201, summary="Add a picture")
    @takes(videos.MAX_PICTURE_BYTES + 100_000)
    async def picture(request: Request, name: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Upload a PNG or JPEG as multipart/form-data; scripts show it by this name."""
        async with site.uploads.receive(
            request, accepts=magic(IMAGES), most_bytes=videos.MAX_PICTURE_BYTES
        ) as received:
            if len(received.files) != 1:
                raise Problem("invalid_request", "the form must have exactly one picture", status=422)
            content = await run_in_threadpool(received.files[0].path.read_bytes)
        try:
            digest = await run_in_threadpool(videos.add_picture, name, content)
        except slides.PictureInvalid as error:
            raise Problem("picture_invalid", str(error), status=422) from error
        if wants_page(request):
            return RedirectResponse(request.url_for("factory.videos").path, 303)
        return JSONResponse({"name": name, "sha256": digest}, 201)

    return routes


def _get(video_id: str, edition: int) -> video_status.VideoStatus:
    """Look up a video and its edition, so that no part of a URL is used as a path unchecked."""
    try:
        with database().read() as session:
            return video_status.status_of(session, video_id, edition)
    except videos.VideoNotFound as error:
        raise Problem("video_not_found", str(error), status=404) from error


def _file_response(path: Path, headers: dict[str, str]) -> Response:
    return FileResponse(path, media_type=TYPES.get(path.suffix, "application/octet-stream"), headers=headers)
