"""Uploads: files that someone sends, bounded while they come, looked at before they are taken, gone when it is over.

    @records.post("/documents")
    @takes(20_000_000)
    async def upload(request: Request, who: ...):
        async with site.uploads.receive(request, accepts=magic(PDF), most_bytes=10_000_000) as received:
            for file in received.files:
                file.path, file.name, file.media_type, file.size, file.sha256

A form of a page sends its CSRF token in its address (`?csrf=`): the body is not looked at before the token is.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from holdfast.web.problems import Problem

HEAD = 4096  # bytes by which a file is known
MOST_FIELDS, LONGEST_FIELD, LONGEST_NAME = 100, 100_000, 255

PDF = {b"%PDF-": "application/pdf"}
IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}

Accepts = Callable[[bytes], str | None]


def magic(*kinds: Mapping[bytes, str]) -> Accepts:
    """Accept files that begin like one of these, whatever they are called; each beginning has its media type."""
    known = {beginning: kind for each in kinds for beginning, kind in each.items()}

    def kind_of(head: bytes) -> str | None:
        return next((kind for beginning, kind in known.items() if head.startswith(beginning)), None)

    return kind_of


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A file that was sent; it lies at `path` until the `async with` is left. `name` is what its sender called it."""

    field: str
    name: str
    media_type: str
    size: int
    sha256: str
    path: Path


@dataclass(frozen=True)
class Received:
    """What a form has sent: its files and its other fields."""

    files: list[Upload] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)


class Uploads:
    """How a site takes files."""

    @contextlib.asynccontextmanager
    async def receive(
        self,
        request: Request,
        *,
        accepts: Accepts,
        most_bytes: int,
        most_files: int = 1,
        folder: Path | None = None,
    ) -> AsyncIterator[Received]:
        """The files of a form, each with at most so many bytes and of a type that `accepts` names by its beginning.

        They lie in a folder of their own, which is removed in the end, whatever happens.
        """
        place = Path(await run_in_threadpool(tempfile.mkdtemp, prefix="holdfast-upload-", dir=folder))
        try:
            form = _Form(place, accepts, most_bytes=most_bytes, most_files=most_files)
            try:
                await _read(request, form)
            finally:
                form.close()
            yield form.received
        finally:
            await run_in_threadpool(shutil.rmtree, place, ignore_errors=True)


async def _read(request: Request, form: _Form) -> None:
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise Problem("unsupported_type", "files are sent as multipart/form-data", status=415)
    try:
        parser = MultipartParser(options[b"boundary"], form.callbacks)
        async for piece in request.stream():
            await run_in_threadpool(parser.write, piece)  # it writes files
        parser.finalize()
    except (FormParserError, ClientDisconnect, UnicodeError) as error:
        raise Problem(
            "upload_broken", f"the form could not be read: {error or 'it was cut off'}", status=400
        ) from error
    if not form.complete:
        raise Problem("upload_broken", "the form has no end", status=400)


class _Form:
    """Puts the parts of a form where they belong, and stops at the first that is too much.

    `request.form()` would read all of a file before anyone could say that it is too large or of the wrong type, and
    would take a form without an end for a whole one.
    """

    def __init__(self, place: Path, accepts: Accepts, *, most_bytes: int, most_files: int) -> None:
        self.received, self.complete = Received(), False
        self._place, self._accepts = place, accepts
        self._most_bytes, self._most_files = most_bytes, most_files
        self._name, self._value = b"", b""
        self._headers: dict[bytes, bytes] = {}
        self._field, self._file_name = "", ""
        self._text, self._head = b"", b""
        self._kind: str | None = None
        self._file: BinaryIO | None = None

    @property
    def callbacks(self) -> Any:
        return {
            "on_part_begin": self._headers.clear,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header,
            "on_headers_finished": self._begin,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header(self) -> None:
        self._headers[self._name.lower()] = self._value
        self._name, self._value = b"", b""

    def _begin(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        name = options.get(b"filename")
        self._text, self._head, self._kind = b"", b"", None
        if name is None:
            if len(self.received.fields) >= MOST_FIELDS:
                raise Problem("body_too_large", f"a form has at most {MOST_FIELDS} fields", status=413)
            return
        if len(self.received.files) >= self._most_files:
            raise Problem("body_too_large", f"at most {self._most_files} files at once", status=413)
        # Only ever shown: the file itself is called by its number.
        self._file_name = name.decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2][:LONGEST_NAME]
        self._file = (self._place / str(len(self.received.files))).open("xb")
        self._size, self._digest = 0, hashlib.sha256()

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._write(self._file, data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > LONGEST_FIELD:
            raise Problem("body_too_large", f"field {self._field[:50]!r} is too long", status=413)

    def _write(self, file: BinaryIO, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._most_bytes:
            raise Problem("body_too_large", f"a file may have at most {self._most_bytes:,} bytes here", status=413)
        if len(self._head) < HEAD:
            self._head += data[: HEAD - len(self._head)]
            if len(self._head) == HEAD:
                self._judge()
        self._digest.update(data)
        file.write(data)

    def _judge(self) -> None:
        self._kind = self._accepts(self._head)
        if self._kind is None:
            raise Problem("unsupported_type", f"{self._file_name!r} is not of a type that is taken here", status=415)

    def _end(self) -> None:
        if self._file is None:
            self.received.fields[self._field] = self._text.decode("utf-8", "replace")
            return
        if len(self._head) < HEAD:
            self._judge()
        self._file.close()
        self._file = None
        assert self._kind is not None
        self.received.files.append(
            Upload(
                field=self._field,
                name=self._file_name,
                media_type=self._kind,
                size=self._size,
                sha256=self._digest.hexdigest(),
                path=self._place / str(len(self.received.files)),
            )
        )

    def _finish(self) -> None:
        self.complete = True
