"""/api/runs/…/artifacts: list and download the files that runs have published."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, BinaryIO

from fastapi import APIRouter, Depends, Header, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, StringConstraints
from starlette.types import Receive, Scope, Send

from holdfast.values.artifacts import Artifact as Made
from holdfast.values.pages import Page
from holdfast.web.api.shapes import MOST, Limit, Name, RunId, Shape
from holdfast.web.auth.authentication import Who
from holdfast.web.middleware import names
from holdfast.web.problems import Problem

if TYPE_CHECKING:
    from holdfast.web.site import Site

BLOCK = 1 << 16
_RANGE = re.compile(r"\s*bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*")
After = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
PREVIEW = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".txt": "text/plain; charset=utf-8",
    ".log": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".csv": "text/plain; charset=utf-8",
    ".json": "text/plain; charset=utf-8",
}
"""Types that a browser may show, because they can't contain scripts. Other files are downloads."""


@dataclass(frozen=True)
class Range:
    """`size` bytes starting at byte `first`; a size of 0 means that the file does not have this range."""

    first: int
    size: int


class Artifact(Shape):
    """A file that a run has published."""

    # Unlike a stored artifact, this one has its `address` as a field.

    run_id: str
    folder: str
    name: str
    claim: int
    size: int
    sha256: str
    created_at: datetime
    address: str = Field(description="Where it is in the artifact store.")


def router(site: "Site") -> APIRouter:
    artifacts = site.resource("/runs", tags=["artifacts"])
    hf = site.hf

    @artifacts.get("/{run_id}/artifacts", name="holdfast.api.artifacts", summary="List the artifacts of a run")
    def list_artifacts(
        run_id: RunId, who: Annotated[Who, Depends(site.viewer)], after: After | None = None, limit: Limit = MOST
    ) -> Page[Artifact]:
        """For a pipeline, lists the artifacts of all its stages and segments. Pass `next` as `?after=` for more."""
        found = [Artifact.model_validate(each) for each in hf.artifacts.of(run_id, limit=limit, after=after)]
        return Page.of(found, limit=limit, cursor=lambda artifact: artifact.address)

    @artifacts.get(
        "/{run_id}/artifacts/{name}",
        name="holdfast.api.artifact",
        summary="Download an artifact",
        response_class=Response,
        responses={
            200: {"content": {"application/octet-stream": {}}, "description": "The whole file."},
            206: {"content": {"application/octet-stream": {}}, "description": "The requested range."},
            304: {"description": "The file still matches `If-None-Match`."},
            416: {"description": "The file does not have this range."},
        },
    )
    def download_artifact(
        run_id: RunId,
        name: Name,
        who: Annotated[Who, Depends(site.viewer)],
        range: Annotated[str | None, Header(max_length=100)] = None,
        if_range: Annotated[str | None, Header(max_length=100)] = None,
        if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
    ) -> Response:
        """Returns the whole file, or the range in the `Range` header. The `ETag` is the SHA-256 of the file. Browsers
        may show images and plain text; other files are downloads."""
        made = hf.artifacts.get(run_id, name)
        headers = _headers(made)
        if names(if_none_match, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        part = requested_range(range, made.size) if if_range in (None, headers["ETag"]) else None
        if part is not None and not part.size:
            headers = {"Content-Range": f"bytes */{made.size}"}
            raise Problem("range_not_satisfiable", f"the file has only {made.size} bytes", status=416, headers=headers)
        return _stream(made.open(), part or Range(0, made.size), made.size, headers, partial=part is not None)

    return artifacts


def requested_range(header: str | None, size: int) -> Range | None:
    """Return the range in a Range header. None means: send the whole file, as there is not exactly one valid range."""
    found = _RANGE.fullmatch(header or "")
    if found is None or not any(found.groups()):
        return None
    first, last = found.groups()
    if not first:
        length = min(int(last), size)
        return Range(size - length, length)
    if last and int(last) < int(first):
        return None
    return Range(int(first), max(0, min(int(last) + 1 if last else size, size) - int(first)))


def _headers(made: Made) -> dict[str, str]:
    kind = PREVIEW.get(PurePath(made.name).suffix.lower())
    return {
        "ETag": f'"{made.sha256}"',
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Type": kind or "application/octet-stream",
        # `artifacts.checked` ensures that a name has no special characters.
        "Content-Disposition": f'{"inline" if kind else "attachment"}; filename="{made.name}"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }


def _stream(file: BinaryIO, part: Range, size: int, headers: dict[str, str], *, partial: bool) -> Response:
    headers = headers | {"Content-Length": str(part.size)}
    if partial:
        headers |= {"Content-Range": f"bytes {part.first}-{part.first + part.size - 1}/{size}"}
    return Download(file, part, 206 if partial else 200, headers)


class Download(StreamingResponse):
    """Sends a range of a file, and always closes the file, even if the client disconnects before the first byte."""

    def __init__(self, file: BinaryIO, part: Range, status: int, headers: dict[str, str]) -> None:
        super().__init__(_blocks(file, part), status, headers=headers)
        self.file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with closing(self.file):
            await super().__call__(scope, receive, send)


def _blocks(file: BinaryIO, part: Range) -> Iterator[bytes]:
    file.seek(part.first)
    left = part.size
    while left and (block := file.read(min(BLOCK, left))):
        left -= len(block)
        yield block
