"""The files of a video: segments while it is made, the result when it is published, and the pictures for scripts.

A player asks for parts of a file (`Range`) and gets them.
"""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

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
# For who may see it, and for no proxy. A segment stays as it is; what is published may be deleted.
KEPT, ASKED = {"Cache-Control": "private, max-age=86400"}, {"Cache-Control": "private, no-cache"}


def router(site: Site) -> APIRouter:
    routes = site.resource(tags=["files"])

    @routes.get("/videos/{video_id}/editions/{edition}/files/{name}", name="factory.file")
    def file(video_id: str, edition: int, name: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """A published file: video.mp4, captions.srt, chapters.json, poster.jpg, manifest.json."""
        _known(video_id, edition)
        folder = folder_of(video_id, edition)
        manifest = publishing.read(folder) or {"files": {}}
        # Only what the manifest names: so no name leads out of the folder, and none to a half file.
        if name not in (*manifest["files"], publishing.MANIFEST) or not (folder / name).is_file():
            raise Problem("file_not_found", f"{video_id} has no published file {name!r}", status=404)
        return _sent(folder / name, ASKED)

    @routes.get("/videos/{video_id}/editions/{edition}/segments/{number}/{name}", name="factory.segment")
    def segment(
        video_id: str, edition: int, number: int, name: str, who: Annotated[Who, Depends(site.viewer)]
    ) -> Response:
        """A file of a segment that is done: film.mp4, thumbnail.jpg, speech.wav, speech.json."""
        cells = _known(video_id, edition).cells
        part = cells[number].parts.get(name) if 0 <= number < len(cells) else None
        if part is None:
            raise Problem("file_not_found", f"segment {number} has no file {name!r} yet", status=404)
        try:
            path = hf.artifacts.get(part["run_id"], part["name"]).path
        except LOST as error:
            raise Problem("file_not_found", str(error), status=404) from error
        if path is None or not path.is_file():
            raise Problem("file_not_found", f"{part['name']} is not there any more", status=404)
        return _sent(path, KEPT)

    @routes.get("/pictures", name="factory.pictures")
    def pictures(who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """The pictures that scripts may show, by name."""
        with database().read() as session:
            return JSONResponse({"pictures": videos.pictures(session)})

    @routes.post("/pictures/{name}", name="factory.picture", status_code=201)
    @takes(videos.LARGEST_PICTURE + 100_000)
    async def picture(request: Request, name: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Hand a picture in (PNG or JPEG, multipart) for scripts to show by this name."""
        async with site.uploads.receive(request, accepts=magic(IMAGES), most_bytes=videos.LARGEST_PICTURE) as received:
            if len(received.files) != 1:
                raise Problem("invalid_request", "send one picture", status=422)
            content = await run_in_threadpool(received.files[0].path.read_bytes)
        try:
            digest = await run_in_threadpool(videos.add_picture, name, content)
        except slides.PictureInvalid as error:
            raise Problem("picture_invalid", str(error), status=422) from error
        if wants_page(request):
            return RedirectResponse(request.url_for("factory.videos").path, 303)
        return JSONResponse({"name": name, "sha256": digest}, 201)

    return routes


def _known(video_id: str, edition: int) -> video_status.VideoStatus:
    """Names from an address are looked up, never joined to a path as they are."""
    try:
        with database().read() as session:
            return video_status.status_of(session, video_id, edition)
    except videos.VideoNotFound as error:
        raise Problem("video_not_found", str(error), status=404) from error


def _sent(path: Path, headers: dict[str, str]) -> Response:
    return FileResponse(path, media_type=TYPES.get(path.suffix, "application/octet-stream"), headers=headers)
