"""Static files: read into memory at start and served under URLs with a version.

The version changes when any file changes, so browsers can cache the files forever. Only files known at start are
served, so no path can lead outside the folders. A later change on disk has no effect, because cached URLs must not
change.
"""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from holdfast.support import json_text
from holdfast.web import middleware
from holdfast.web.problems import Problem
from holdfast.web.routes import is_open, resource

if TYPE_CHECKING:
    from holdfast.web.site import Site

KEPT = "public, max-age=31536000, immutable"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2"}


@dataclass(frozen=True)
class File:
    content: bytes
    etag: str
    media_type: str


class Statics:
    """The files of some folders; a later folder overrides an earlier one."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.files = {
            path.relative_to(folder).as_posix(): _read(path)
            for folder in folders
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith(".")
        }
        self.version = json_text.digest(*(file.etag for file in self.files.values()))

    def __getitem__(self, name: str) -> File:
        if name not in self.files:
            raise Problem("unknown_path", f"there is no file {name}", status=404)
        return self.files[name]


def router(site: "Site") -> APIRouter:
    statics = resource(site)

    @statics.get("/static/{version}/{path:path}", name="holdfast.static", include_in_schema=False)
    @is_open
    def static(request: Request, version: str, path: str) -> Response:
        """Return a static file. It needs no token, because it contains nothing secret."""
        file = site.statics[path]
        kept = KEPT if version == site.statics.version else "no-cache"
        headers = {"ETag": file.etag, "Cache-Control": kept}
        if middleware.names(request.headers.get("if-none-match"), file.etag):
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=file.media_type)

    return statics


def _read(path: Path) -> File:
    content = path.read_bytes()
    kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return File(content, f'"{json_text.digest(content.hex())}"', kind)
